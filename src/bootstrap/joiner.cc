#include "bootstrap/joiner.h"

#include <unistd.h>

#include <cstring>
#include <mutex>

#include "base/host.h"
#include "base/log.h"
#include "base/socket/interfaces.h"
#include "base/threads/activity.h"
#include "bootstrap/comm_key.h"
#include "bootstrap/contact.h"
#include "bootstrap/id_use.h"
#include "bootstrap/join_options.h"
#include "bootstrap/loop/connection_loop.h"
#include "bootstrap/root.h"
#include "bootstrap/settings.h"
#include "bootstrap/unique_id.h"

namespace tutti::bootstrap {
namespace {

/// A root that is not fixed listens before its id exists: refusal means it is gone, give or take a full backlog.
constexpr milliseconds kRefusedPatience{5000};
/// The root speaks first when time is up: it knows who is missing.
constexpr milliseconds kRootGrace{5000};

Result<NetInterface> pickInterface(const BootstrapSettings& settings, const Address& subnetOf) {
  NetInterface chosen;
  if (subnetOf.set() && subnetOf.isLoopback()) {
    // Whoever names a loopback address means this host only; ::1 is on no list of interfaces.
    chosen.name = "lo";
    chosen.address = subnetOf;
    chosen.address.setPort(0);
  } else {
    ASSIGN(chosen, bootstrapInterface(settings.interfaceNames, settings.family, subnetOf));
  }
  static std::once_flag once;
  std::call_once(once, [&] { info(kBootstrap, "Bootstrap: Using {}", chosen.text()); });
  return chosen;
}

Status checkOptions(const JoinOptions& o) {
  if (o.nRanks < 1 || o.nRanks > kMaxRanks) {
    return fail(ncclInvalidArgument, "Bootstrap: {} ranks are asked for: nranks must be 1 to {}", o.nRanks, kMaxRanks);
  }
  if (o.rank < 0 || o.rank >= o.nRanks) {
    return fail(ncclInvalidArgument, "Bootstrap: invalid rank requested: {}/{}", o.rank, o.nRanks);
  }
  if (o.ids.empty() || o.ids.size() > static_cast<std::size_t>(o.nRanks)) {
    return fail(ncclInvalidArgument, "Bootstrap: {} unique ids for {} ranks; there must be 1 to nranks", o.ids.size(),
                o.nRanks);
  }
  return Status();
}

/// All that the steps of one join share.
struct Join {
  const JoinOptions& options;
  std::vector<UniqueId> ids;
  Deadline deadline = Deadline::never();
  Joined joined;

  int nRoots() const { return static_cast<int>(ids.size()); }
  int rootIndex() const { return rootOf(options.nRanks, nRoots(), options.rank); }
  ConnectionLoop& loop() const { return *joined.loop; }
  Deadline lastAnswer() const { return Deadline::at(deadline.when() + kRootGrace); }
};

Status decodeIds(Join& join) {
  for (const ncclUniqueId& bytes : join.options.ids) {
    ASSIGN(UniqueId id, decodeUniqueId(bytes));
    join.ids.push_back(id);
    if (id.fixedAddress) break;  // with NCCL_COMM_ID there is one root, however many ids were made
  }
  return Status();
}

/// With NCCL_COMM_ID rank 0 runs the root.
Status startFixedRoot(const Join& join) {
  const UniqueId& id = join.ids.front();
  if (!id.fixedAddress) return Status();
  TRY(checkCommKey(join.options.settings.commKey));
  if (join.options.rank != 0) return Status();
  Listener::Options listen;
  listen.reusePort = true;
  ASSIGN(Listener listener, Listener::listen(id.root, listen));
  const BootstrapSettings& settings = join.options.settings;
  ASSIGN(auto root, startRoot({std::move(listener),
                               rootKey(id, settings.commKey),
                               true,
                               settings.timeout,
                               settings.handshakeTimeout,
                               settings.peerTimeout,
                               {{}, settings.reportAfter}}));
  join.joined.use->own(std::move(root));
  return Status();
}

Status startEngine(Join& join) {
  const JoinOptions& o = join.options;
  const UniqueId& id = join.ids.front();
  ASSIGN(const NetInterface interface, pickInterface(o.settings, id.fixedAddress ? id.root : Address()));
  ASSIGN(Listener listener, Listener::listen(interface.address));
  Joined& joined = join.joined;
  joined.nRanks = o.nRanks;
  joined.place = treePlace(o.nRanks, join.nRoots(), o.rank);
  joined.self.listen = listener.address();
  joined.self.pid = ::getpid();
  setText(joined.self.host, hostName());
  return startLoop(joined, o, std::move(listener), id.fixedAddress);
}

Status contactRoot(const Join& join, int index, Purpose purpose, Role role) {
  const UniqueId& id = join.ids[static_cast<std::size_t>(index)];
  Contact root;
  root.target = {id.root,      rootKey(id, join.options.settings.commKey), purpose, join.options.rank, kRootRank,
                 kMaxRankFrame};
  root.whom = id.fixedAddress ? "the bootstrap root (rank 0)" : "the bootstrap root";
  root.deadline = join.lastAnswer();
  root.listening = id.fixedAddress ? join.deadline : join.deadline.earlierOf(Deadline::in(kRefusedPatience));
  root.answer = join.options.settings.handshakeTimeout;
  const WaitNote note("the bootstrap root to answer", -1);
  ASSIGN(auto link, makeContact(root, join.loop(), join.options.abort));
  join.loop().addClient(std::move(link), role, -1);
  return Status();
}

template <class T>
Result<T> awaitRoot(const Join& join, FrameType type, const char* what) {
  const WaitNote note(what, -1);
  ASSIGN(const Frame frame, join.loop().await(Channel::Root, -1, static_cast<int>(type), join.lastAnswer(),
                                              [&] { return std::string(what); }));
  const auto value = decodeValue<T>(frame.payload);
  if (!value)
    return fail(ncclInternalError, "Bootstrap: the root sent a malformed answer of {} bytes", frame.payload.size());
  return *value;
}

Result<Placement> checkIn(const Join& join) {
  const JoinOptions& o = join.options;
  TRY(contactRoot(join, join.rootIndex(), Purpose::CheckIn, Role::Root));
  CheckIn me{o.rank,    o.nRanks,   join.rootIndex(), join.nRoots(),
             o.version, ::getpid(), processHash(),    join.joined.self.listen,
             {}};
  setText(me.host, hostName());
  join.loop().sendToRoot(FrameType::CheckIn, encodeValue(me));
  return awaitRoot<Placement>(join, FrameType::Placement, "the root's word that all ranks have come");
}

/// Where this rank's parent listens: the own root says so within a segment, the parent's root for a leader.
Result<Address> findParent(const Join& join, const Placement& placement) {
  const TreePlace& place = join.joined.place;
  if (place.parent < 0 || placement.parent.set()) return placement.parent;
  const int index = rootOf(join.options.nRanks, join.nRoots(), place.parent);
  TRY(contactRoot(join, index, Purpose::Lookup, Role::Lookup));
  const Lookup lookup{join.options.rank, join.options.nRanks, join.nRoots()};
  join.loop().sendToRoot(FrameType::Lookup, encodeValue(lookup), Role::Lookup);
  return awaitRoot<Address>(join, FrameType::LeaderFound, "another root's word where its first rank listens");
}

void deriveKeys(Join& join, const Placement& placement) {
  Key key{};
  for (const UniqueId& id : join.ids) {
    key = deriveKey(rootKey(id, join.options.settings.commKey), "tutti communicator", {key});
  }
  if (join.nRoots() == 1) key = deriveKey(key, "tutti session", {placement.session});
  join.joined.key = key;
  join.joined.commHash = nameOfComm(key);
}

Status enterTree(Join& join) {
  ASSIGN(const Placement placement, checkIn(join));
  deriveKeys(join, placement);
  join.loop().admit(join.joined.key);
  ASSIGN(const Address parent, findParent(join, placement));
  return connectParent(join.joined, parent, join.lastAnswer());
}

}  // namespace

void failUse(const Joined& joined, Status why) {
  if (!joined.use) return;
  std::optional<Notice> told;
  if (joined.loop) told = joined.loop->knownFailure();
  if (!told) {
    const std::string who = rankText(joined.rank, hostName(), ::getpid());
    told = {joined.rank,   why.code(), hostName(), fmt::format("{} failed: {}", who, lastErrorText()),
            Cause::Failed, ::getpid()};
  }
  joined.use->failed(*told);
  joined.use->release();
}

Status startLoop(Joined& joined, const JoinOptions& o, Listener listener, bool rank0IsRoot) {
  joined.timeout = o.settings.timeout;
  joined.handshakeTimeout = o.settings.handshakeTimeout;
  joined.peerTimeout = o.settings.peerTimeout;
  joined.abort = o.abort;
  ConnectionLoop::Options options{joined.rank,
                                  joined.nRanks,
                                  joined.place,
                                  o.settings.peerTimeout,
                                  o.settings.handshakeTimeout,
                                  o.onPeerLost,
                                  o.onState,
                                  o.onDeparture,
                                  rank0IsRoot,
                                  o.device};
  ASSIGN(joined.loop, ConnectionLoop::start(std::move(options), std::move(listener)));
  if (o.abort != nullptr) {
    o.abort->addListener([weak = std::weak_ptr<ConnectionLoop>(joined.loop)](Status why) {
      if (const auto loop = weak.lock()) loop->abort(why);
    });
  }
  return Status();
}

Status connectParent(const Joined& joined, const Address& address, Deadline deadline) {
  const int rank = joined.place.parent;
  if (rank < 0) return Status();
  Contact call;
  call.target = {address, joined.key, Purpose::Tree, joined.rank, rank, kMaxRankFrame};
  call.own = joined.self.listen;
  call.whom = rankText(rank, address.hostText());
  call.deadline = deadline;
  call.listening = deadline.earlierOf(Deadline::in(kRefusedPatience));
  call.answer = joined.handshakeTimeout;
  ASSIGN(auto link, makeContact(call, *joined.loop, joined.abort));
  joined.loop->addClient(std::move(link), Role::Tree, rank);
  return Status();
}

std::uint64_t nameOfComm(const Key& key) {
  const Key text = deriveKey(key, "tutti name");
  std::uint64_t name = 0;
  std::memcpy(&name, text.data(), sizeof name);
  return name;
}

Result<Joined> joinRanks(const JoinOptions& options) {
  TRY(checkOptions(options));
  TRY(initCrypto());
  raiseFileLimit();
  Join join{options, {}, Deadline::in(options.settings.timeout), {}};
  TRY(decodeIds(join));
  join.joined.rank = options.rank;
  join.joined.use = std::make_shared<IdUse>(join.ids);
  Status status = startFixedRoot(join);
  if (status.ok()) status = startEngine(join);
  if (status.ok()) status = enterTree(join);
  if (status.ok()) return std::move(join.joined);
  if (join.joined.loop) join.loop().announceLastError(status);
  failUse(join.joined, status);
  if (join.joined.loop) join.loop().stop();
  return status;
}

Status connectPeer(const Joined& joined, int peer, Deadline deadline) {
  ConnectionLoop& loop = *joined.loop;
  Contact call;
  call.target = {loop.addressOf(peer), joined.key, Purpose::Peer, joined.rank, peer, kMaxRankFrame};
  call.own = joined.self.listen;
  call.whom = loop.describe(peer);
  call.listening = call.deadline = deadline;
  call.answer = joined.handshakeTimeout;
  call.peer = peer;
  Result<std::unique_ptr<Link>> link = makeContact(call, loop, joined.abort);
  if (!link.ok()) {
    // At once: who waits for this rank knows less of the cause, and its time may be up as well.
    if (link.status().code() == ncclRemoteError) loop.announceLastError(link.status());
    return link.status();
  }
  loop.addClient(std::move(link).value(), Role::PeerOut, peer);
  return Status();
}

Result<ncclUniqueId> createUniqueId(const BootstrapSettings& settings, const Lineage& parent, AbsenceReport report) {
  TRY(initCrypto());
  UniqueId id;
  id.parent = parent;
  if (!settings.commId.empty()) {
    TRY(checkCommKey(settings.commKey));
    ASSIGN(id.root, Address::parse(settings.commId));
    id.fixedAddress = true;
    return encodeUniqueId(id);
  }
  ASSIGN(const NetInterface interface, pickInterface(settings, {}));
  ASSIGN(Listener listener, Listener::listen(interface.address));
  id.root = listener.address();
  fillRandom(id.secret);
  ASSIGN(const auto root, startRoot({std::move(listener), rootKey(id, {}), false, settings.timeout,
                                     settings.handshakeTimeout, settings.peerTimeout, std::move(report)}));
  registerRoot(id.secret, root);
  return encodeUniqueId(id);
}

Result<ncclUniqueId> createUniqueId(const BootstrapSettings& settings) {
  return createUniqueId(settings, Lineage(), AbsenceReport{{}, settings.reportAfter});
}

}  // namespace tutti::bootstrap
