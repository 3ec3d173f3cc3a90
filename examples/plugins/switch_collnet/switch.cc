#include "switch.h"

#include <sys/eventfd.h>

#include <queue>

#include "reduce.h"

namespace switch_collnet {

namespace {

/// A node has no more operations under way than its plugin has requests; this is more.
constexpr std::size_t kMostAhead = 64;
/// How long a connection may stay that has not joined a group, or that has been told of an end.
constexpr Milliseconds kStranger(10000);
constexpr Milliseconds kLinger(2000);
constexpr std::size_t kMostEnded = 1000;

struct Posted {
  Operation operation;
  Bytes data;
};

std::string hex(const GroupKey& key) {
  char text[20];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(key.word[0]));
  return text;
}

/// What is wrong with an operation by itself; empty: nothing.
std::string objection(const Operation& o, std::uint64_t nodes) {
  const std::uint64_t element = bytesOfType(o.type);
  if (o.collective > Collective::ReduceScatter) return "is none that a switch knows";
  if (o.windowBytes == 0 || o.windowBytes > kMostPayload) return "has a size that no switch takes";
  if (o.collective != Collective::AllGather && (element == 0 || !reduces(o.op))) return "is no reduction";
  if (o.collective != Collective::AllGather && o.windowBytes % element != 0) return "ends within an element";
  if (o.collective == Collective::AllReduce) return "";
  if (o.collective == Collective::ReduceScatter && (o.windowOffset % element != 0 || o.bytesPerRank % element != 0)) {
    return "begins within an element";
  }
  const std::uint64_t all = nodes * o.bytesPerRank;
  return o.windowOffset > all || o.windowBytes > all - o.windowOffset ? "has a window that leaves the data" : "";
}

}  // namespace

/// A connection. It is a node of a group once it has joined one.
struct Switch::Peer {
  explicit Peer(Fd fd) : stream(std::move(fd)) {}

  Stream stream;
  Group* group = nullptr;
  std::size_t node = 0;
  Bytes arriving;             // payload of the frame that is being read
  std::queue<Posted> posted;  // operations that others have not come to
  bool saidBye = false;
  bool lingering = false;                            // has been told of an end: what it still sends is thrown away
  Clock::time_point end = Clock::now() + kStranger;  // of one that lingers, or has not joined

  bool temporary() const { return lingering || group == nullptr; }
};

struct Switch::Group {
  GroupKey key;
  std::vector<Peer*> peers;  // by node; null: has not joined, or is gone
  std::vector<NodeStatistics> statistics;
  std::size_t joined = 0;
  std::uint64_t done = 0;        // operations
  Clock::time_point deadline{};  // for joining; then for the operation that waits for somebody
  Milliseconds operationTime{0};
  bool waiting = true;  // the deadline counts
  bool failed = false;

  bool complete() const { return joined == peers.size(); }
  std::string nameOf(std::size_t node) const {
    const std::string& name = statistics[node].name;
    return "node " + std::to_string(node) + (name.empty() ? "" : " (" + name + ")");
  }
  std::string lines() const {
    std::string text;
    for (std::size_t i = 0; i < statistics.size(); ++i) {
      const NodeStatistics& s = statistics[i];
      text += "group=" + hex(key) + " node=" + std::to_string(i) + " of=" + std::to_string(peers.size()) +
              " state=" + s.state + " allreduce=" + std::to_string(s.operations[0]) +
              " allgather=" + std::to_string(s.operations[1]) + " reducescatter=" + std::to_string(s.operations[2]) +
              " bytes_in=" + std::to_string(s.bytesIn) + " bytes_out=" + std::to_string(s.bytesOut) +
              " name=" + s.name + "\n";
    }
    return text;
  }
};

Switch::Switch(Fd listener, Faults faults)
    : listener_(std::move(listener)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), faults_(std::move(faults)) {}

Switch::~Switch() = default;

void Switch::stop() {
  stopping_ = true;
  const std::uint64_t one = 1;
  // It can only fail because the counter is full, and then run() has been woken.
  if (::write(wake_.get(), &one, sizeof(one)) < 0) return;
}

bool Switch::run() {
  while (!stopping_ && !dead_) {
    wait();
    acceptPeers();
    for (auto& peer : peers_) serve(*peer);
    for (auto& [key, group] : groups_) advance(*group);
    expire();
    removeGone();
  }
  drain();
  peers_.clear();
  return !dead_;
}

void Switch::acceptPeers() {
  for (Fd fd = acceptFrom(listener_); fd.valid(); fd = acceptFrom(listener_)) {
    peers_.push_back(std::make_unique<Peer>(std::move(fd)));
  }
  if (errno != EAGAIN) ::poll(nullptr, 0, 10);  // no descriptors are left: the listener stays readable
}

/// Sends and reads what the socket lets through now.
void Switch::serve(Peer& peer) {
  peer.stream.flush();
  while (peer.stream.alive()) {
    const auto frame = peer.stream.receive([&](const Frame& f) -> char* {
      const bool known = peer.group != nullptr || f.payload <= sizeof(Join);  // of strangers no more is read
      if (!known) return nullptr;
      peer.arriving.resize(f.payload);
      return peer.arriving.data();
    });
    if (!frame) break;
    if (peer.lingering) continue;
    if (peer.group == nullptr) {
      greet(peer, *frame);
    } else {
      take(peer, *frame);
    }
  }
  if (!peer.stream.alive() && peer.group != nullptr) leave(peer);
}

/// The first frame of a connection.
void Switch::greet(Peer& peer, const Frame& frame) {
  if (frame.kind == Kind::AskStatistics) {
    const std::string text = statistics();
    peer.stream.send({.kind = Kind::Statistics}, std::make_shared<const Bytes>(text.begin(), text.end()));
    peer.lingering = true;
    peer.end = Clock::now() + kLinger;
    return;
  }
  Join wanted;
  if (frame.kind != Kind::Join || frame.payload != sizeof(wanted)) return peer.stream.fail("it does not join");
  std::memcpy(&wanted, peer.arriving.data(), sizeof(wanted));
  wanted.name[sizeof(wanted.name) - 1] = '\0';
  join(peer, wanted);
}

void Switch::join(Peer& peer, const Join& wanted) {
  if (wanted.nodes == 0 || wanted.nodes > 65536 || wanted.node >= wanted.nodes) {
    return failPeer(peer, "there is no node " + std::to_string(wanted.node) + " of " + std::to_string(wanted.nodes));
  }
  auto& group = groups_[wanted.group];
  if (group == nullptr) {
    group = std::make_unique<Group>();
    group->key = wanted.group;
    group->peers.resize(wanted.nodes);
    group->statistics.resize(wanted.nodes);
    group->deadline = Clock::now() + Milliseconds(wanted.joinMs);
    group->operationTime = Milliseconds(wanted.operationMs);
  }
  if (group->failed) return failPeer(peer, "the group has failed before this node came");
  if (group->peers.size() != wanted.nodes || group->statistics[wanted.node].state != "awaited") {
    const std::string why = "node " + std::to_string(wanted.node) + " of " + std::to_string(wanted.nodes) + " (" +
                            wanted.name + ") has no place in its group of " + std::to_string(group->peers.size()) +
                            ": another has come with that number, or the nodes disagree on how many they are";
    fail(*group, why);
    return failPeer(peer, why);
  }
  peer.group = group.get();
  peer.node = wanted.node;
  group->peers[wanted.node] = &peer;
  group->statistics[wanted.node].name = wanted.name;
  group->statistics[wanted.node].state = "joined";
  if (++group->joined < group->peers.size()) return;
  group->waiting = false;
  for (Peer* each : group->peers) each->stream.send({.kind = Kind::Joined}, nullptr, 0);
}

/// A frame of a node.
void Switch::take(Peer& peer, const Frame& frame) {
  Group& group = *peer.group;
  if (frame.kind == Kind::Bye) {
    peer.saidBye = true;
    return;
  }
  if (frame.kind != Kind::Operation || peer.saidBye) {
    return fail(group, group.nameOf(peer.node) + " has sent what is no operation");
  }
  const Operation& o = frame.operation;
  std::string why = objection(o, group.peers.size());
  if (why.empty() && frame.payload != bytesToSwitch(o, peer.node)) {
    why = "comes with " + std::to_string(frame.payload) + " bytes of data instead of " +
          std::to_string(bytesToSwitch(o, peer.node));
  }
  if (peer.posted.size() >= kMostAhead) why = "comes while too many others are under way";
  if (!why.empty()) return fail(group, group.nameOf(peer.node) + ": " + describe(o) + " " + why);
  NodeStatistics& statistics = group.statistics[peer.node];
  ++statistics.operations[static_cast<int>(o.collective)];
  statistics.bytesIn += frame.payload;
  peer.posted.push({o, std::move(peer.arriving)});
  peer.arriving = {};
}

/// A node's connection has ended.
void Switch::leave(Peer& peer) {
  Group& group = *peer.group;
  group.peers[peer.node] = nullptr;
  peer.group = nullptr;
  std::string& state = group.statistics[peer.node].state;
  if (group.failed) return;
  state = peer.saidBye ? "left" : "died";
  if (!peer.saidBye) {
    fail(group, group.nameOf(peer.node) + " is gone without a word after " + std::to_string(group.done) +
                    " operations (" + peer.stream.error() + "): its process may have ended or given up");
  }
}

void Switch::advance(Group& group) {
  while (!group.failed && !dead_ && group.complete() && mayGoOn(group)) complete(group);
}

/// Whether all nodes have posted the next operation. Also starts and stops the clock of an operation that waits, and
/// fails the group where it would wait for a node that has left.
bool Switch::mayGoOn(Group& group) {
  const Posted* first = nullptr;
  std::size_t firstNode = 0;
  bool all = true;
  bool left = false;
  for (std::size_t i = 0; i < group.peers.size(); ++i) {
    Peer* const peer = group.peers[i];
    const bool posted = peer != nullptr && !peer->posted.empty();
    if (posted && first == nullptr) {
      first = &peer->posted.front();
      firstNode = i;
    }
    all = all && posted;
    left = left || peer == nullptr || (peer->saidBye && !posted);
  }
  if (all || first == nullptr) {
    group.waiting = false;
    return all;
  }
  if (left) {
    std::string who;
    for (std::size_t i = 0; i < group.peers.size(); ++i) {
      const Peer* const peer = group.peers[i];
      if (peer == nullptr || (peer->saidBye && peer->posted.empty()))
        who += (who.empty() ? "" : ", ") + group.nameOf(i);
    }
    fail(group, who + " has left; " + group.nameOf(firstNode) + " still wants " + describe(first->operation));
    return false;
  }
  if (!group.waiting) group.deadline = Clock::now() + group.operationTime;
  group.waiting = true;
  return false;
}

/// Carries out the operation that all nodes have posted.
void Switch::complete(Group& group) {
  const Posted& first = group.peers[0]->posted.front();
  const Operation operation = first.operation;
  std::string others;
  std::vector<const char*> data;
  for (std::size_t i = 0; i < group.peers.size(); ++i) {
    const Posted& posted = group.peers[i]->posted.front();
    if (posted.operation != operation) {
      others += (others.empty() ? "" : "; ") + group.nameOf(i) + " calls " + describe(posted.operation);
    }
    data.push_back(posted.data.data());
  }
  if (!others.empty() || operation.sequence != group.done + 1) {
    return fail(group, "the nodes do not call the same: " + group.nameOf(0) + " calls " + describe(operation) +
                           (others.empty() ? ", out of order" : ", but " + others));
  }
  if (const Fault* const die = faults_.find("die"); die != nullptr) {
    dead_ = operations_ >= static_cast<std::uint64_t>(die->number());
    if (dead_) return;
  }
  ++operations_;
  ++group.done;
  Bytes whole;
  if (operation.collective == Collective::AllGather) {
    for (std::size_t i = 0; i < data.size(); ++i) {
      whole.insert(whole.end(), data[i], data[i] + ownPart(operation, i).bytes);
    }
  } else {
    whole.resize(operation.windowBytes);
    reduce(operation.type, operation.op, data, whole.size(), whole.data());
  }
  const auto shared = std::make_shared<const Bytes>(std::move(whole));
  for (std::size_t i = 0; i < group.peers.size(); ++i) answer(group, operation, i, shared);
}

/// Sends a node its result, unless a fault has something else in mind.
void Switch::answer(Group& group, const Operation& operation, std::size_t node, std::shared_ptr<const Bytes> data) {
  Peer& peer = *group.peers[node];
  peer.posted.pop();
  const int who = static_cast<int>(node);
  if (faults_.strikes("lost", who, operation.sequence)) return;
  if (operation.collective == Collective::ReduceScatter) {
    const Range own = ownPart(operation, node);
    const auto from = data->begin() + static_cast<std::ptrdiff_t>(own.begin);
    data = std::make_shared<const Bytes>(from, from + static_cast<std::ptrdiff_t>(own.bytes));
  }
  if (faults_.strikes("wrong", who, operation.sequence) && !data->empty()) {
    Bytes changed = *data;
    const std::size_t element = operation.collective == Collective::AllGather ? 1 : bytesOfType(operation.type);
    for (std::size_t i = 0; i < element; ++i) changed[i] = static_cast<char>(changed[i] ^ 0x5a);
    data = std::make_shared<const Bytes>(std::move(changed));
  }
  if (faults_.strikes("short", who, operation.sequence) && !data->empty()) {
    data = std::make_shared<const Bytes>(data->begin(), data->end() - 1);
  }
  const Fault* const late = faults_.find("late", who);
  const Clock::time_point when = late != nullptr ? Clock::now() + Milliseconds(late->number()) : Clock::time_point{};
  group.statistics[node].bytesOut += data->size();
  peer.stream.send({.kind = Kind::Result, .operation = operation}, std::move(data), when);
  peer.stream.flush();
}

/// Ends a group: all of its nodes are told why.
void Switch::fail(Group& group, const std::string& why) {
  if (group.failed) return;
  group.failed = true;
  group.waiting = false;
  for (std::size_t i = 0; i < group.peers.size(); ++i) {
    std::string& state = group.statistics[i].state;
    if (state == "joined") state = "failed";
    if (group.peers[i] != nullptr) failPeer(*group.peers[i], why);
  }
}

/// Says why, and then does not close at once: a node that is still sending would find its connection reset, and the
/// words lost.
void Switch::failPeer(Peer& peer, const std::string& why) {
  peer.stream.send({.kind = Kind::Failed}, std::make_shared<const Bytes>(why.begin(), why.end()));
  peer.stream.flush();
  peer.posted = {};
  peer.lingering = true;
  peer.end = Clock::now() + kLinger;
}

/// Ends what has waited for too long.
void Switch::expire() {
  const auto now = Clock::now();
  for (auto& [key, group] : groups_) {
    if (!group->waiting || group->failed || now < group->deadline) continue;
    std::string missing;
    std::string wanted;
    for (std::size_t i = 0; i < group->peers.size(); ++i) {
      Peer* const peer = group->peers[i];
      const bool there =
          group->complete() ? peer != nullptr && !peer->posted.empty() : group->statistics[i].state != "awaited";
      if (!there) missing += (missing.empty() ? "" : ", ") + group->nameOf(i);
      if (there && group->complete() && wanted.empty()) wanted = describe(peer->posted.front().operation);
    }
    fail(*group, group->complete() ? wanted + " has waited too long for " + missing
                                   : "of " + std::to_string(group->peers.size()) + " nodes have not come: " + missing);
  }
  for (auto& peer : peers_) {
    if (peer->temporary() && now >= peer->end) peer->stream.fail("it has had its time");
  }
}

void Switch::removeGone() {
  for (auto& peer : peers_) {
    if (!peer->stream.alive() && peer->group != nullptr) leave(*peer);
  }
  peers_.remove_if([](const auto& peer) { return !peer->stream.alive(); });
  for (auto at = groups_.begin(); at != groups_.end();) {
    const Group& group = *at->second;
    const bool empty = std::all_of(group.peers.begin(), group.peers.end(), [](Peer* p) { return p == nullptr; });
    if (!empty) {
      ++at;
      continue;
    }
    ended_.push_back(group.lines());
    if (ended_.size() > kMostEnded) ended_.pop_front();
    at = groups_.erase(at);
  }
}

/// Until something is due.
int Switch::pollTimeout() const {
  const auto now = Clock::now();
  auto next = now + std::chrono::hours(1);
  for (const auto& [key, group] : groups_) {
    if (group->waiting) next = std::min(next, group->deadline);
  }
  for (const auto& peer : peers_) {
    if (peer->temporary()) next = std::min(next, peer->end);
    const auto departure = peer->stream.nextDeparture();
    if (departure && *departure > now) next = std::min(next, *departure);  // others wait for their sockets
  }
  const auto left = std::chrono::duration_cast<Milliseconds>(next - now).count();
  return static_cast<int>(std::max<Milliseconds::rep>(left + 1, 0));
}

void Switch::wait() {
  std::vector<pollfd> all{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  for (const auto& peer : peers_) {
    const auto departure = peer->stream.nextDeparture();
    const bool sends = departure && *departure <= Clock::now();
    all.push_back({peer->stream.fd().get(), static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0});
  }
  ::poll(all.data(), all.size(), pollTimeout());
}

/// Lets results that are ready leave; late ones (a fault) are none of them.
void Switch::drain() {
  const auto end = Clock::now() + kLinger;
  const auto ready = [](const Peer& peer) {
    const auto departure = peer.stream.nextDeparture();
    return peer.stream.alive() && departure && *departure <= Clock::now();
  };
  for (auto& peer : peers_) {
    while (ready(*peer) && Clock::now() < end) {
      const std::uint64_t before = peer->stream.sent();
      peer->stream.flush();
      if (peer->stream.sent() == before) waitFor(peer->stream.fd(), POLLOUT, Milliseconds(10));
    }
  }
}

std::string Switch::statistics() const {
  std::string text;
  for (const auto& [key, group] : groups_) text += group->lines();
  for (const std::string& lines : ended_) text += lines;
  return text;
}

}  // namespace switch_collnet
