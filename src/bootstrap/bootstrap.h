// How the ranks of a communicator find each other and stay in touch: unique id -> root -> tree of TCP connections.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ranks/abort.h"
#include "base/ranks/control_channel.h"
#include "nccl.h"

namespace tutti::bootstrap {

class Invitations;
struct AbsenceReport;
struct BootstrapSettings;
struct Departure;
struct JoinOptions;
struct Kin;
struct Lineage;

/// Makes an id: without NCCL_COMM_ID a secret, a listening socket, and a root thread that ends by itself when it has
/// served all ranks, when the time from the first rank's arrival exceeds settings.timeout, or after a day without
/// anybody; this process must live until then. With NCCL_COMM_ID only bytes. Any thread.
/// Errors: ncclSystemError, ncclInvalidUsage (no such interface), ncclInvalidArgument (NCCL_COMM_ID does not parse).
Result<ncclUniqueId> createUniqueId(const BootstrapSettings& settings);
/// The same, of one by which a communicator is to grow; its root says who does not come.
Result<ncclUniqueId> createUniqueId(const BootstrapSettings& settings, const Lineage& parent, AbsenceReport report);

/// The process ends in order: all roots of its ids say so to those who wait for them. Waits until that has left the
/// process, at the latest until `deadline`. Any thread.
void endRoots(Deadline deadline);

/// One rank's place in a joined communicator. Holds one TCP connection per neighbour in a tree of all ranks and one
/// thread, asleep until a socket moves, that notices within milliseconds when a neighbour's process dies and tells
/// all others. Peer connections for send/recv are opened at first use.
///
/// Destroying it says goodbye, which peers do not take for a death; after abort() it says that this rank aborted.
/// Threads: as ControlChannel says; announceFailure(), abort(), announceAbort(), lost() from any
/// thread.
class Bootstrap final : public ControlChannel {
 public:
  /// A call that all ranks are to make, until they have met in a collective: this rank has come to it. Where others
  /// have not after `reportAfter`, a warning names them once; 0: never. `name`: as the API spells it.
  class Attendance {
   public:
    Attendance(Bootstrap& at, const char* name, milliseconds reportAfter);
    Attendance(const Attendance&) = delete;
    ~Attendance();

   private:
    Bootstrap& at_;
  };

  /// Collective over all ranks of the ids; returns when every rank has come. Errors: ncclRemoteError naming the ranks
  /// that did not come or died meanwhile; ncclInvalidUsage where ranks disagree (number of ranks or roots, version,
  /// two processes with one rank, other key); ncclInvalidArgument; the Abort's status.
  static Result<std::unique_ptr<Bootstrap>> join(const JoinOptions& options);
  /// The same for ranks that know each other from split() or shrink(): `options` without ids, rank and number of ranks.
  /// Returns as soon as this rank is connected to its parent in the tree; what follows waits for the others.
  static Result<std::unique_ptr<Bootstrap>> join(const JoinOptions& options, Kin kin);
  ~Bootstrap() override;

  int rank() const override;
  int size() const override;
  Status allGather(std::span<std::byte> blocks) override;
  Status barrier() override;
  Status broadcast(int root, std::span<std::byte> data) override;
  Status send(int peer, int tag, std::span<const std::byte> message) override;
  Status recv(int peer, int tag, std::span<std::byte> message) override;
  bool arrived(int peer, int tag) override;
  milliseconds timeout() const override;
  void abort(Status why) override;

  /// Collective: who has the same color makes a new communicator, in order of keys and then of ranks. With
  /// NCCL_SPLIT_NOCOLOR a rank is no member of one (Kin::member). `reportAfter`: as Attendance has it. Errors:
  /// ncclInvalidUsage where ranks make different calls; of a collective.
  Result<Kin> split(int color, int key, milliseconds reportAfter);
  /// For all ranks in `survivors` (ascending, this one among them) and no others: they make a new communicator, also
  /// where this one has failed or was aborted. Errors: see findSurvivors().
  Result<Kin> shrink(std::span<const int> survivors, const Abort& abort, milliseconds reportAfter);
  /// Tells all other ranks of a unique id by which this communicator is to grow. Does not wait. Any thread.
  void invite(const ncclUniqueId& id);
  /// What other ranks have told in this way. Any thread; may outlive this.
  std::shared_ptr<Invitations> invitations() const;

  /// Tells all peers that this rank's part of the communicator has failed; their onPeerLost gets `text` with this
  /// rank's name in front. `seenOf`: what failed is another rank or the network, and `text` says which; then this
  /// rank's name comes behind, as that of a witness. Does not wait.
  void announceFailure(Status why, const std::string& text, bool seenOf = false);
  /// Undoes abort(), and what the Abort of JoinOptions has done once: for a rank that gave up what it did, and stays.
  /// Nobody may be inside another member. Peers hear nothing. What other ranks that live and go on have said, or still
  /// say, of a time in which they had been resumed less often than this one, is forgotten.
  void resume();
  /// abort(), and tells all peers at once that this rank aborted, where leave() would tell them later. Does not wait.
  void announceAbort(Status why);
  /// Tells all other ranks how this one is: their onState gets the bytes, at most 256 of them. Does not wait; what one
  /// rank says arrives in order. A rank that is stopped hears nothing, nor do those that are reached through it. Any
  /// thread.
  void announceState(std::span<const std::byte> state);
  /// Whether this rank waits for others in some way of its own: the bootstrap knows of its own calls only. While it
  /// does, a peer that gives no sign of life has failed; otherwise it may come back. Counted; it counts one after
  /// join(), until the first endWait(). Any thread.
  void beginWait();
  void endWait();
  /// Through whom announcements reach `rank` from rank 0: its parent in the tree; -1 for rank 0.
  int parentOf(int rank) const;
  /// The first lost peer's status, success while everybody lives.
  Status lost() const;
  /// Says goodbye and closes; also done by the destructor. Every later call is an ncclInvalidUsage. `account`: what the
  /// others may want to know of this rank when it has gone, see takeDepartures().
  void leave(std::span<const std::byte> account = {});
  /// For a process that ends by exit(): says goodbye in the name of a rank that nobody tells to leave. Does not wait,
  /// and closes nothing; of deaths nothing is told or heard from then on. leave() may still follow. Any thread.
  void announceExit(std::span<const std::byte> account);
  /// Waits until everything said so far is on its way; false at the deadline.
  bool awaitSaid(Deadline deadline);

  /// `rank 3 (host gpu07, pid 4711)`, for messages.
  std::string describe(int rank) const;
  /// Equal on all ranks, different between communicators: for log lines and names.
  std::uint64_t commHash() const;
  /// A key for one use that only the ranks of this communicator know: the same on all of them, unrelated for different
  /// purposes. As strong as the unique id's secret; with NCCL_COMM_ID, as strong as TUTTI_COMM_KEY.
  std::array<std::byte, 32> keyFor(std::string_view purpose) const;
  /// Whether that rank has said goodbye: what happens to its connections from then on is no failure. Who has left
  /// itself hears of nobody any more, and takes all others to have left. Any thread.
  bool hasLeft(int rank) const;
  /// Whether it has, but only because its process has ended (Departure::exited). Any thread.
  bool hasExited(int rank) const;
  /// All of them that were not taken before, in the order in which they were heard of: whoever takes them keeps them,
  /// for accounts of many ranks are much. None once this rank has left or its process is about to end. Any thread.
  std::vector<Departure> takeDepartures();
  /// "rank 3 (host gpu07, pid 4711) has ended its process (exit) without ncclCommDestroy", or that it has left the
  /// communicator. Any thread.
  std::string describeDeparture(int rank) const;

 private:
  struct State;
  explicit Bootstrap(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tutti::bootstrap
