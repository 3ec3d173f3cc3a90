// One rank's connections and the thread that watches them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/ranks/abort.h"
#include "base/socket/unproven.h"
#include "base/threads/thread.h"
#include "bootstrap/link/link.h"
#include "bootstrap/link/poller.h"
#include "bootstrap/loop/peer_news.h"
#include "bootstrap/loop/tree.h"

namespace tutti::bootstrap {

/// What an own connection is for. Tree links live as long as the communicator: their end is a death.
/// Adopted ones mend the tree where ranks have left (tree_repair.h); they carry no collectives.
enum class Role : std::uint8_t { Unauthenticated, Root, Lookup, Tree, Adopted, PeerOut, PeerIn, KinOut, KinIn };

/// Whether what is said to all goes on by such a connection.
inline bool isOfTree(Role role) {
  return role == Role::Tree || role == Role::Adopted;
}

/// Whether both sides of such a connection tell each other that they live.
inline bool givesSigns(Role role) {
  return isOfTree(role) || role == Role::Root || role == Role::KinOut || role == Role::KinIn;
}

/// Which queue a received frame goes to.
enum class Channel : std::uint8_t { Root, User, Collective, Kin };

class Invitations;
class PacedListener;

/// Payload of a frame between ranks, at most.
inline constexpr std::uint32_t kMaxRankFrame = 1U << 30;

/// How long word may take of who waits in a call of all ranks, and who is missing there.
inline constexpr milliseconds kRollCall{2000};

/// Owns all connections of a rank after its listener is up, delivers what they bring into queues, and notices deaths.
/// Its thread sleeps in the kernel while nothing moves. Any thread may call anything; stop() ends it for good.
class ConnectionLoop {
 public:
  struct Options {
    int rank = 0;
    int nRanks = 1;
    TreePlace place;
    milliseconds peerTimeout{0};
    milliseconds handshakeTimeout{0};
    std::function<void(const PeerLost&)> onPeerLost;
    std::function<void(int, std::span<const std::byte>)> onState;
    std::function<void()> onDeparture;
    bool rank0IsRoot = false;  ///< with NCCL_COMM_ID: known before the root has said a word
    int device = -1;           ///< JoinOptions::device
  };

  static Result<std::shared_ptr<ConnectionLoop>> start(Options options, Listener listener);
  ConnectionLoop(Options options, Listener listener, Poller poller);
  ~ConnectionLoop();

  /// Lets in peers that know `key`. Until then they queue up in the kernel.
  void admit(const Key& key);
  /// Takes over a connection on which we are the client of `peer`.
  void addClient(std::unique_ptr<Link> link, Role role, int peer);
  /// Whether a link to send to `peer` exists.
  bool reaches(int peer) const;
  /// Sends on the link of a tree neighbour or opened peer; frames to oneself go to the queue. False: no such link.
  bool send(int peer, FrameType type, int tag, const SharedBytes& payload, std::uint8_t op = 0);
  /// On the connection to the own root, or to the root asked for a leader. After Done the root's end is no death.
  void sendToRoot(FrameType type, Bytes payload, Role role = Role::Root);

  /// Takes the next frame. `expected` says what is missing, for the error at `deadline`.
  Result<Frame> await(Channel channel, int peer, int tag, Deadline deadline,
                      const std::function<std::string()>& expected);
  /// Whether await() would return at once, with a frame or an error.
  bool arrived(Channel channel, int peer, int tag) const;

  /// Waits until arrived(), or the deadline: whether it has.
  bool arrivesBy(Channel channel, int peer, int tag, Deadline deadline);

  /// This rank waits in a call that all ranks are to make; calls are numbered by the caller, ascending.
  void enterCall(int call);
  void leaveCall();
  /// Those who wait in the same call are asked to say so, and do so once they have come.
  void askWhoIsPresent();
  /// All who have not said that they wait in this rank's call, ascending.
  std::vector<int> absent() const;
  /// Names them in a warning, if there are any. `call`: what they are to call.
  void reportAbsent(const char* call) const;

  /// Tells all others of a unique id by which the communicator is to grow.
  void invite(const SharedBytes& id);
  /// Those of others.
  const std::shared_ptr<Invitations>& invitations() const { return invitations_; }

  /// Sends to a survivor to whom a connection for that was opened (Role::KinOut); false: it is gone.
  bool sendKin(int peer, int tag, const SharedBytes& payload);
  /// Takes the next frame of a survivor, whether this communicator has failed or not. Errors: ncclRemoteError where
  /// that rank is gone, has failed, or does not come; the status of `abort`.
  Result<Frame> awaitKin(int peer, int tag, Deadline deadline, const Abort& abort);
  /// Whether such a frame has come.
  bool hasKin(int peer, int tag) const;
  /// Waits until awaitKin() would return at once, or the deadline: whether it would.
  bool kinArrivesBy(int peer, int tag, Deadline deadline, const Abort& abort);
  /// The next frame, if it has come.
  std::optional<Frame> takeKin(int peer, int tag);
  /// The exchange with them is over; `why`: it has failed, with this thread's last error, and they are told.
  void closeKin(std::span<const int> peers, Status why);

  /// `mend` is called, on the loop's thread, some time after a rank has left: the tree may be in parts. It must not
  /// wait. Once, before any rank can have left.
  void tendTree(std::function<void()> mend);
  std::set<int> leftRanks() const;
  /// Whether a connection of the tree leads to that rank, or to any lower one.
  bool isLinked(int peer) const;
  bool hasParent() const;
  /// Takes over a connection that mends the tree; closes it where there is one already.
  void addAdopted(std::unique_ptr<Link> link, int peer);
  /// A rank that this one has called, and that has not answered for so long.
  void suspectSilence(int rank, milliseconds waited);

  /// Our own failure, told to everybody reachable. Only the first one counts. `seenOf`: what failed is not ours, but
  /// another rank's or the network's, and `text` says whose.
  void announce(Status why, const std::string& text, bool seenOf);
  /// The same of an error of this thread's: with whose it is told by its code. After abort() it is the abort.
  void announceLastError(Status why);
  /// How this rank is, to all others that can be reached.
  void announceState(const SharedBytes& state);
  /// One more (1) or one fewer (-1) that waits for peers, in await() or elsewhere. At first there is one.
  void wait(int change);
  void abort(Status why);
  void resume();
  /// Tells everybody reachable that this rank gives its part up, as stop() does of an aborted one. Idempotent.
  void announceAbort();
  Status aborted() const;
  Status failure() const;
  /// What is known of it; unset while nothing has failed.
  std::optional<Notice> knownFailure() const;
  /// The same as an error that has been reported: whoever returns it to the application has a text that says who is
  /// gone.
  Status checkFailure();
  void setTable(std::vector<RankEntry> table);
  Address addressOf(int rank) const;
  std::string describe(int rank) const;
  bool hasLeft(int rank) const;
  bool hasExited(int rank) const;
  std::vector<Departure> takeDepartures();
  std::string describeDeparture(int rank) const;
  /// Says goodbye in the name of a process that is about to end. Does not wait. Idempotent.
  void announceExit(std::span<const std::byte> account);
  /// Whether all that was said has gone out by then.
  bool awaitSaid(Deadline deadline);
  /// Says goodbye (or what went wrong), gets it out within a second, ends the thread. Idempotent.
  void stop(std::span<const std::byte> account = {});

 private:
  /// When a rank's goodbye came, and whether only its process has ended.
  struct Leave {
    SteadyClock::time_point when;
    bool exited = false;
    bool passedOn = false;  ///< to the other neighbours in the tree
  };
  struct Entry {
    std::unique_ptr<Link> link;
    Role role = Role::Unauthenticated;
    int peer = -1;
    bool left = false;  ///< said goodbye: its end is no news
    Deadline proveBy = Deadline::never();
    UnprovenPlaces::Place place;                         ///< until it has shown its pass
    SteadyClock::time_point heard = SteadyClock::now();  ///< the last sign of life
    bool knows = false;                                  ///< has told of a failure: if it ends now, it is for that
    int silent = 0;                                      ///< turns of tendNeighbours() without a sign of life, too long
    bool done = false;                                   ///< nothing more will come: to be closed
    bool confirmed = false;                              ///< Adopted: the other side has taken it over as well
  };
  /// Why no survivor's word will come any more, from `told` on.
  struct LostKin {
    std::string text;
    Deadline told = Deadline::never();
  };
  /// A peer that has closed a connection before all messages had gone out. It may only have heard before this rank of
  /// another one's failure: told when word of that has not come by `due`.
  struct Suspicion {
    int peer = -1;
    Notice notice;
    Deadline due = Deadline::never();
  };
  /// A rank that gives no sign of life. Whoever waits takes it for dead; it may come back as long as nobody does.
  struct Silence {
    Notice notice;
    SteadyClock::time_point known;
  };
  using Name = std::uint64_t;
  static constexpr Name kListenerName = 0;
  using QueueKey = std::tuple<Channel, int, int>;

  void run();
  void turn(std::vector<Poller::Event>& events);
  void onNoMemory();
  void onEvent(const Poller::Event& event);
  void acceptAll();
  milliseconds provingTime(const Link& link) const;
  bool settleStranger(Entry& entry);
  bool settleAdopted(const Entry& entry) const;
  bool hasParentLocked() const;
  bool isLinkedLocked(int peer) const;
  /// Says to a new neighbour all that it may have missed.
  void greet(Name name, Entry& entry);
  void onAdoptedEnd(const Entry& entry);
  void mendTree(std::unique_lock<std::mutex>& lock);
  Notice silenceOf(int rank, const std::string& hostText, milliseconds waited) const;
  void onFrame(Name name, Entry& entry, Frame frame);
  void onTreeFrame(Name name, Entry& entry, Frame frame);
  void onRootFrame(Entry& entry, Frame frame);
  void onNotice(Name name, Entry& entry, const Frame& frame);
  void onEnd(const Entry& entry);
  void onRootEnd(const Link::End& end, const Address& at);
  void onRootSilence(const Address& at);
  int rootRank() const;
  std::string rootText() const;
  void onTreeEnd(const Entry& entry);
  void onPeerEnd(const Entry& entry);
  void waitLocked(int change);
  void onSilence(Name name, Entry& entry);
  void onSignOfLife(Name name, Entry& entry);
  void onSilenceFrame(Name name, const Frame& frame);
  /// When the first rank that is silent counts as dead, for somebody waits.
  Deadline endOfSilence() const;
  bool wasSilent(int rank) const;
  void tellSilence();
  /// Four times in `peerTimeout`: says to the root and the neighbours in the tree that this process lives, and looks
  /// who does not.
  void tendNeighbours();
  void expireStrangers();
  /// Tells of the peers that have stayed under suspicion.
  void tellSuspicions();
  void onBroken(int error);
  milliseconds nextLimit();
  void deliver(Channel channel, int peer, int tag, Frame frame);
  /// Takes a failure in and tells all others, its sender too: then that one knows. `tell`: the owner as well.
  void record(Notice notice, Name from, bool tell);
  void passOn(const Notice& notice, Name from, Name except);
  /// Whether it is of a rank that goes on, and of a time before this one was resumed: that concerns it no more.
  bool isOver(const Notice& notice) const;
  void take(Notice notice, bool tell);
  /// Of a neighbour that has told of a failure, which explains it until this rank is resumed.
  void onEndAfterFailure(int peer);
  Notice absenceOf(int rank) const;
  void remember(const Notice& notice) const;
  void flood(FrameType type, int tag, const SharedBytes& payload, Name except);
  void sendOn(Name name, Entry& entry, FrameType type, int tag, const SharedBytes& payload, std::uint8_t op = 0);
  Name insert(Entry entry);
  Entry* sendLink(int peer, Name* name);
  /// Whether the last words have reached everybody who is to hear them; the lock is held.
  bool everybodyTold() const;
  std::string describeLocked(int rank) const;
  std::string describeDepartureLocked(int rank) const;
  bool exitedLocked(int rank) const;
  /// The lock is held.
  void sayGoodbye(bool exited, std::span<const std::byte> account);
  void tellPeers(FrameType type, const SharedBytes& payload);
  void onGoodbye(Name name, Entry& entry, Frame frame);
  /// What this rank says of a failure, or of an abort, of its own. The lock is held.
  Notice ownNotice(Cause cause, ncclResult_t code, std::string text) const;
  Notice abortNotice() const;
  /// Of an abort of `aborter`: the failure of a member of which another communicator of this process has heard.
  std::optional<Notice> causeOfAbort(const std::string& aborter) const;
  std::string ownName() const;
  Status blame();
  /// A rank whose goodbye means that nothing more will come on `channel` from `peer`; null: none yet. `until` is moved
  /// to the moment at which the first such rank counts as gone. The lock is held.
  const int* goneLocked(Channel channel, int peer, Deadline& until) const;
  void onState(Name name, Frame frame);
  void onPresent(Name name, const Frame& frame);
  void tellPresent();
  void onInvite(Name name, const Frame& frame);
  void onKinFrame(Entry& entry, Frame frame);
  void onKinEnd(const Entry& entry);
  void loseKin(int peer, std::string text);
  std::optional<Frame> takeKinLocked(int peer, int tag);
  bool kinLostLocked(int peer) const;
  bool arrivedLocked(Channel channel, int peer, int tag) const;
  void tellOwner(std::unique_lock<std::mutex>& lock);
  void tellStates(std::unique_lock<std::mutex>& lock);
  void tellDepartures(std::unique_lock<std::mutex>& lock);

  const Options options_;
  const SteadyClock::time_point started_ = SteadyClock::now();
  SteadyClock::time_point tended_ = SteadyClock::now();  ///< the loop's thread
  milliseconds patience_{options_.peerTimeout};          ///< the loop's thread; of the least patient neighbour
  const std::shared_ptr<Invitations> invitations_;
  const std::unique_ptr<PacedListener> listener_;
  Poller poller_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  struct Shared {
    std::map<Name, Entry> links;
    std::map<int, Name> outgoing;  ///< link to use for sending, by peer
    Name nextName = 1;
    std::map<QueueKey, std::deque<Frame>> queues;
    std::map<int, Leave> left;
    std::vector<Departure> departures;  ///< of them, those that nobody has taken yet
    bool departed = false;              ///< some of these are new to the owner
    std::set<int> children;             ///< that have connected, whatever became of them
    std::vector<RankEntry> table;
    std::optional<Key> key;
    Welcome root;
    bool placed = false;
    bool rootDone = false;
    std::vector<Suspicion> suspicions;
    std::function<void()> mend;
    Deadline mendAt = Deadline::never();
    std::map<int, Silence> silent;  ///< by rank
    int waits = 1;
    SteadyClock::time_point waitsSince = SteadyClock::now();
    std::int32_t inCall = -1;  ///< the call that this rank waits in
    bool toldPresent = false;
    std::map<std::int32_t, std::set<int>> present;  ///< by call: who has said that it waits there
    std::map<int, LostKin> lostKin;                 ///< by rank
    std::optional<Notice> failure;
    bool failureTold = false;      ///< fail() has been called for it
    std::optional<PeerLost> lost;  ///< to hand to the owner outside the lock
    std::deque<Frame> states;      ///< the same, of others
    Status aborted;
    std::uint32_t era = 0;                         ///< how often it was resumed
    std::set<std::pair<int, std::uint32_t>> over;  ///< rank and era of notices that did not concern it, and were told
    std::optional<Notice> later;                   ///< a failure of a time to which this rank has yet to be resumed
    std::set<int> goneAway;                        ///< neighbours whose end a failure of this time explains
    bool exiting = false;                          ///< goodbye was said, for the process ends
    bool broken = false;                           ///< the poller works no more
    bool stopping = false;
    bool stopped = false;
  } s_;  ///< guarded by mutex_
  Thread thread_;
};

}  // namespace tutti::bootstrap
