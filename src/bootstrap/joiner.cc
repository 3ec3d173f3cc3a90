#include "bootstrap/joiner.h"

#include <unistd.h>

#include <cstring>
#include <mutex>

#include "base/host.h"
#include "base/log.h"
#include "base/socket/errors.h"
#include "base/socket/interfaces.h"
#include "bootstrap/join_options.h"
#include "bootstrap/root.h"
#include "bootstrap/settings.h"
#include "bootstrap/unique_id.h"

namespace tutti::bootstrap {
namespace {

constexpr milliseconds kRetryStep{50};
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

/// Connects, patiently: refused connections are tried again until `patience` ends.
/// `peer`: whose leaving ends it; -1: nobody's.
Result<Socket> connectTo(const Address& to, const std::string& whom, ConnectionLoop& loop, const Abort* abort,
                         Deadline patience, int peer = -1) {
  while (true) {
    Socket socket;
    const IoOutcome outcome = Socket::tryConnect(to, {patience, abort, -1}, &socket);
    if (outcome.done()) return socket;
    if (abort != nullptr && abort->raised()) return abort->status();
    TRY(loop.checkFailure());
    if (loop.hasLeft(peer)) {
      return fail(ncclRemoteError, "Bootstrap: {}, but is to be connected with", loop.describeDeparture(peer));
    }
    const bool passes = outcome.kind == IoOutcome::Kind::Failed && mayComeUpYet(outcome.error);
    if (!passes || patience.expired()) {
      const std::string why = outcome.error != 0 ? errnoText(outcome.error) : "timed out";
      return fail(ncclRemoteError,
                  "Bootstrap: cannot connect to {} at {}: {}; has that process ended, was the id used "
                  "before, or does a firewall or a wrong interface (NCCL_SOCKET_IFNAME) stand between?",
                  whom, to.text(), why);
    }
    ::usleep(static_cast<useconds_t>(kRetryStep.count() * 1000));
  }
}

Status checkOptions(const JoinOptions& o) {
  if (o.nRanks < 1 || o.rank < 0 || o.rank >= o.nRanks) {
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
  if (!id.fixedAddress || join.options.rank != 0) return Status();
  Listener::Options listen;
  listen.reusePort = true;
  ASSIGN(Listener listener, Listener::listen(id.root, listen));
  const BootstrapSettings& settings = join.options.settings;
  return startRoot({std::move(listener), rootKey(id, settings.commKey), true, settings.timeout,
                    settings.handshakeTimeout, settings.peerTimeout});
}

Status startEngine(Join& join) {
  const JoinOptions& o = join.options;
  const UniqueId& id = join.ids.front();
  ASSIGN(const NetInterface interface, pickInterface(o.settings, id.fixedAddress ? id.root : Address()));
  ASSIGN(Listener listener, Listener::listen(interface.address));
  Joined& joined = join.joined;
  joined.rank = o.rank;
  joined.nRanks = o.nRanks;
  joined.place = treePlace(o.nRanks, join.nRoots(), o.rank);
  joined.timeout = o.settings.timeout;
  joined.abort = o.abort;
  joined.self.listen = listener.address();
  joined.self.pid = ::getpid();
  setText(joined.self.host, hostName());
  ConnectionLoop::Options options{
      o.rank,    o.nRanks,        joined.place, o.settings.peerTimeout, o.settings.handshakeTimeout, o.onPeerLost,
      o.onState, id.fixedAddress, o.device};
  ASSIGN(joined.loop, ConnectionLoop::start(std::move(options), std::move(listener)));
  if (o.abort != nullptr) {
    o.abort->addListener([weak = std::weak_ptr<ConnectionLoop>(joined.loop)](Status why) {
      if (const auto loop = weak.lock()) loop->abort(why);
    });
  }
  return Status();
}

Status contactRoot(const Join& join, int index, Purpose purpose, Role role) {
  const UniqueId& id = join.ids[static_cast<std::size_t>(index)];
  const Deadline patience = id.fixedAddress ? join.deadline : join.deadline.earlierOf(Deadline::in(kRefusedPatience));
  const char* const whom = id.fixedAddress ? "the bootstrap root (rank 0)" : "the bootstrap root";
  ASSIGN(Socket socket, connectTo(id.root, whom, join.loop(), join.options.abort, patience));
  const Key key = rootKey(id, join.options.settings.commKey);
  join.loop().addClient(std::move(socket), ClientHandshake(key, purpose, join.options.rank, kRootRank), role, -1);
  return Status();
}

template <class T>
Result<T> awaitRoot(const Join& join, FrameType type, const char* what) {
  const Deadline deadline = Deadline::at(join.deadline.when() + kRootGrace);
  ASSIGN(const Frame frame,
         join.loop().await(Channel::Root, -1, static_cast<int>(type), deadline, [&] { return std::string(what); }));
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
  const Key name = deriveKey(key, "tutti name");
  std::memcpy(&join.joined.commHash, name.data(), sizeof join.joined.commHash);
}

Status enterTree(Join& join) {
  ASSIGN(const Placement placement, checkIn(join));
  deriveKeys(join, placement);
  join.loop().admit(join.joined.key);
  ASSIGN(const Address parent, findParent(join, placement));
  const int rank = join.joined.place.parent;
  if (rank < 0) return Status();
  const Deadline patience = join.deadline.earlierOf(Deadline::in(kRefusedPatience));
  ASSIGN(Socket socket, connectTo(parent, rankText(rank, ""), join.loop(), join.options.abort, patience));
  join.loop().addClient(std::move(socket), ClientHandshake(join.joined.key, Purpose::Tree, join.options.rank, rank),
                        Role::Tree, rank);
  return Status();
}

}  // namespace

Result<Joined> joinRanks(const JoinOptions& options) {
  TRY(checkOptions(options));
  TRY(initCrypto());
  raiseFileLimit();
  Join join{options, {}, Deadline::in(options.settings.timeout), {}};
  TRY(decodeIds(join));
  TRY(startFixedRoot(join));
  TRY(startEngine(join));
  if (const Status status = enterTree(join); !status.ok()) {
    join.loop().announceLastError(status);
    join.loop().stop();
    return status;
  }
  return std::move(join.joined);
}

Status connectPeer(const Joined& joined, int peer, Deadline deadline) {
  ConnectionLoop& loop = *joined.loop;
  ASSIGN(Socket socket, connectTo(loop.addressOf(peer), loop.describe(peer), loop, joined.abort, deadline, peer));
  loop.addClient(std::move(socket), ClientHandshake(joined.key, Purpose::Peer, joined.rank, peer), Role::PeerOut, peer);
  return Status();
}

Result<ncclUniqueId> createUniqueId(const BootstrapSettings& settings) {
  TRY(initCrypto());
  UniqueId id;
  if (!settings.commId.empty()) {
    ASSIGN(id.root, Address::parse(settings.commId));
    id.fixedAddress = true;
    return encodeUniqueId(id);
  }
  ASSIGN(const NetInterface interface, pickInterface(settings, {}));
  ASSIGN(Listener listener, Listener::listen(interface.address));
  id.root = listener.address();
  fillRandom(id.secret);
  TRY(startRoot({std::move(listener), rootKey(id, {}), false, settings.timeout, settings.handshakeTimeout,
                 settings.peerTimeout}));
  return encodeUniqueId(id);
}

}  // namespace tutti::bootstrap
