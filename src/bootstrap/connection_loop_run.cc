// The loop's thread: accepting, reading, noticing who is gone.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "bootstrap/connection_loop.h"
#include "bootstrap/settings.h"

namespace tutti::bootstrap {
namespace {

/// Connections that have not proved themselves, besides those that all ranks may open at once.
constexpr std::size_t kMaxStrangers = 256;
/// How long word of a failure may take to come over the tree after a rank that has heard of it closed its connections.
constexpr auto kEchoGrace = milliseconds(2000);

}  // namespace

milliseconds ConnectionLoop::nextLimit() {
  Deadline next = Deadline::never();
  for (const auto& [name, entry] : s_.links) {
    if (!entry.link->open()) next = next.earlierOf(entry.proveBy);
    if (entry.role == Role::Tree || entry.role == Role::Root)
      next = next.earlierOf(Deadline::at(tended_ + signInterval(patience_)));
  }
  for (const Suspicion& suspicion : s_.suspicions) next = next.earlierOf(suspicion.due);
  return next.isNever() ? milliseconds(-1) : next.remaining();
}

void ConnectionLoop::run() {
  std::vector<Poller::Event> events;
  std::unique_lock lock(mutex_);
  while (!s_.stopped) {
    const milliseconds limit = nextLimit();
    lock.unlock();
    poller_.wait(events, limit);
    lock.lock();
    for (const Poller::Event& event : events) onEvent(event);
    expireStrangers();
    tendNeighbours();
    tellSuspicions();
    if (s_.stopping || s_.exiting) changed_.notify_all();
    tellOwner(lock);
    tellStates(lock);
  }
}

void ConnectionLoop::tellOwner(std::unique_lock<std::mutex>& lock) {
  if (!s_.lost || s_.stopping) return;
  const PeerLost lost = *std::exchange(s_.lost, std::nullopt);
  if (!options_.onPeerLost) return;
  lock.unlock();
  options_.onPeerLost(lost);
  lock.lock();
}

void ConnectionLoop::tellStates(std::unique_lock<std::mutex>& lock) {
  const std::deque<Frame> states = std::exchange(s_.states, {});
  if (states.empty() || s_.stopping || !options_.onState) return;
  lock.unlock();
  for (const Frame& state : states) options_.onState(state.header.tag, state.payload);
  lock.lock();
}

void ConnectionLoop::acceptAll() {
  while (s_.key) {
    Socket socket;
    const AcceptKind kind = acceptNow(listener_.fd(), &socket);
    if (kind != AcceptKind::Accepted) return;
    const auto unproven = [](const auto& named) { return named.second.role == Role::Unauthenticated; };
    const auto count = std::count_if(s_.links.begin(), s_.links.end(), unproven);
    if (static_cast<std::size_t>(count) >= kMaxStrangers + static_cast<std::size_t>(options_.nRanks)) {
      s_.links.erase(std::find_if(s_.links.begin(), s_.links.end(), unproven));  // the oldest makes room
    }
    auto link = std::make_unique<Link>(std::move(socket), ServerHandshake(*s_.key, options_.rank), kMaxRankFrame);
    insert({std::move(link), Role::Unauthenticated, -1, false, Deadline::in(options_.handshakeTimeout)});
  }
}

/// Gives a connection that has just proved itself its role; false where it claims one that it cannot have.
bool ConnectionLoop::settleStranger(Entry& entry) {
  const int peer = entry.link->clientRank();
  if (peer < 0 || peer >= options_.nRanks) return false;
  entry.peer = peer;
  if (entry.link->purpose() == Purpose::Peer) {
    entry.role = Role::PeerIn;
    return true;
  }
  const auto& children = options_.place.children;
  const bool child = std::any_of(children.begin(), children.end(), [&](RankRange c) { return c.begin == peer; });
  if (entry.link->purpose() != Purpose::Tree || !child || s_.outgoing.contains(peer)) return false;
  entry.role = Role::Tree;
  watchSilence(entry.link->fd(), options_.peerTimeout);
  return true;
}

void ConnectionLoop::onEvent(const Poller::Event& event) {
  if (event.name == kListenerName) return acceptAll();
  const auto found = s_.links.find(event.name);
  if (found == s_.links.end()) return;
  Entry& entry = found->second;
  std::vector<Frame> frames;
  if (event.readable) {
    entry.link->receive(frames);
    entry.heard = SteadyClock::now();
  }
  for (const Frame& frame : frames) {
    if (frame.type() == FrameType::Alive) patience_ = leastPatience(patience_, frame.header.tag);
  }
  bool keep = true;
  if (entry.role == Role::Unauthenticated && entry.link->open()) {
    keep = settleStranger(entry);
    if (keep && entry.role == Role::Tree) {
      s_.outgoing[entry.peer] = event.name;
      s_.children.insert(entry.peer);
      // It comes too late to have heard of a failure.
      if (s_.failure) {
        sendOn(event.name, entry, FrameType::Notice, 0, std::make_shared<const Bytes>(encodeNotice(*s_.failure)));
      }
    }
  }
  for (Frame& frame : frames) {
    if (keep) onFrame(event.name, entry, std::move(frame));
  }
  entry.link->flush();
  if (keep && !entry.link->end()) return poller_.setWrite(entry.link->fd(), event.name, entry.link->wantsWrite());
  Entry gone = std::move(entry);
  s_.links.erase(found);
  if (const auto out = s_.outgoing.find(gone.peer); out != s_.outgoing.end() && out->second == event.name) {
    s_.outgoing.erase(out);
  }
  poller_.remove(gone.link->fd());
  onEnd(gone);
}

void ConnectionLoop::onFrame(Name name, Entry& entry, Frame frame) {
  switch (entry.role) {
    case Role::Root:
    case Role::Lookup:
      return onRootFrame(entry, std::move(frame));
    case Role::Tree:
      return onTreeFrame(name, entry, std::move(frame));
    case Role::PeerIn:
      if (frame.type() == FrameType::Message) {
        const int tag = frame.header.tag;
        return deliver(Channel::User, entry.peer, tag, std::move(frame));
      }
      [[fallthrough]];
    case Role::PeerOut:
      if (frame.type() == FrameType::Notice) return onNotice(name, entry, frame);
      if (frame.type() == FrameType::Goodbye) onGoodbye(name, entry, std::move(frame));
      return;
    case Role::Unauthenticated:
      return;
  }
}

void ConnectionLoop::onRootFrame(Entry& entry, Frame frame) {
  if (frame.type() == FrameType::Welcome) {
    if (const auto welcome = decodeValue<Welcome>(frame.payload)) s_.root = *welcome;
    return;
  }
  if (frame.type() == FrameType::Notice) {
    if (auto notice = decodeNotice(frame.payload)) record(std::move(*notice), 0, true);
    return;
  }
  if (frame.type() == FrameType::Placement) s_.placed = true;
  if (frame.type() == FrameType::LeaderFound) entry.left = true;  // its root has nothing more to say
  const int tag = frame.header.type;
  deliver(Channel::Root, -1, tag, std::move(frame));
}

void ConnectionLoop::onTreeFrame(Name name, Entry& entry, Frame frame) {
  const int tag = frame.header.tag;
  if (frame.type() == FrameType::Message) return deliver(Channel::User, entry.peer, tag, std::move(frame));
  if (frame.type() == FrameType::Collective) return deliver(Channel::Collective, entry.peer, tag, std::move(frame));
  if (frame.type() == FrameType::Notice) return onNotice(name, entry, frame);
  if (frame.type() == FrameType::State) return onState(name, std::move(frame));
  if (frame.type() == FrameType::Goodbye) onGoodbye(name, entry, std::move(frame));
}

/// There is one way between any two ranks in a tree: what is passed on to all but who sent it comes to each rank once.
void ConnectionLoop::onState(Name name, Frame frame) {
  const int rank = frame.header.tag;
  if (rank < 0 || rank >= options_.nRanks || frame.payload.size() > kMaxState) return;
  flood(FrameType::State, rank, std::make_shared<const Bytes>(frame.payload), name);
  s_.states.push_back(std::move(frame));
}

void ConnectionLoop::onEnd(const Entry& entry) {
  switch (entry.role) {
    case Role::Unauthenticated:
      info(kBootstrap, "Bootstrap: rank {} turned away a client from {} that did not prove to be a rank", options_.rank,
           entry.link->peer().text());
      return;
    case Role::Root:
    case Role::Lookup:
      return entry.left ? void() : onRootEnd(entry.link->end().value_or(Link::End()), entry.link->peer());
    case Role::Tree:
      return onTreeEnd(entry);
    case Role::PeerOut:
    case Role::PeerIn:
      return onPeerEnd(entry);
  }
}

void ConnectionLoop::onRootEnd(const Link::End& end, const Address& at) {
  if (s_.rootDone || s_.failure || (s_.placed && s_.root.rank < 0)) return;
  if (end.kind == Link::End::Kind::Refused) {
    const std::string why =
        end.verdict == Verdict::WrongKey
            ? "does not share this communicator's key: is another job on that port, or does TUTTI_COMM_KEY differ?"
        : end.verdict == Verdict::OtherVersion
            ? "speaks another version of the protocol: load the same library everywhere"
            : "is not a root of this library: is NCCL_COMM_ID's port taken by another program?";
    return record({-1, ncclInvalidUsage, "", fmt::format("Bootstrap: who listens at {} {}", at.text(), why)}, 0, true);
  }
  const std::string host = textOf(s_.root.host);
  const int rank = s_.root.rank < 0 && options_.rank0IsRoot ? 0 : s_.root.rank;
  const std::string who = rank >= 0 ? rankText(rank, host, s_.root.pid)
                          : host.empty()
                              ? std::string("the process that made the unique id")
                              : fmt::format("process {} on host {}, which made the unique id,", s_.root.pid, host);
  record({rank, ncclRemoteError, host,
          fmt::format(
              "Bootstrap: {} died while the communicator was being made: the root at {} closed the connection{}{}; "
              "where it lives, the key may differ (other ids or TUTTI_COMM_KEY) or the id was used before",
              who, at.text(), end.error != 0 ? ": " : "", end.error != 0 ? errnoText(end.error) : "")},
         0, true);
}

void ConnectionLoop::onTreeEnd(const Entry& entry) {
  if (entry.left || entry.knows || s_.stopping) return;
  const Link::End end = entry.link->end().value_or(Link::End());
  std::string host;
  if (!s_.table.empty()) host = textOf(s_.table[static_cast<std::size_t>(entry.peer)].host);
  const std::string who =
      host.empty() ? rankText(entry.peer, entry.link->peer().hostText()) : describeLocked(entry.peer);
  const std::string how = end.error != 0 ? errnoText(end.error) : "closed without a goodbye";
  record(
      {entry.peer, ncclRemoteError, host,
       fmt::format("Bootstrap: {} died or lost its network: its connection to rank {} ended ({}); look for the first "
                   "error on that rank, or for the system's out-of-memory killer",
                   who, options_.rank, how),
       Cause::Died},
      0, true);
}

/// The tree tells whether its process is gone, while it is whole: ranks that have left break it. And nobody else tells
/// of messages that were on their way there.
void ConnectionLoop::onPeerEnd(const Entry& entry) {
  const bool excused = entry.left || entry.knows || s_.left.contains(entry.peer);
  const bool untold = !excused && entry.link->open() && !s_.left.empty();
  if (s_.stopping || (entry.role == Role::PeerIn && !untold)) return;
  std::string how = fmt::format("no answer within {} ms", options_.handshakeTimeout.count());
  if (const auto& end = entry.link->end()) {
    how = end->kind == Link::End::Kind::Refused ? "who listens there is not that rank"
          : end->error != 0                     ? errnoText(end->error)
                                                : "closed by that rank";
  }
  if (excused || !(untold || entry.link->undelivered())) {
    info(kBootstrap, "Bootstrap: the connection from rank {} to rank {} ended ({}); the next message opens another",
         options_.rank, entry.peer, how);
    return;
  }
  std::string host;
  if (!s_.table.empty()) host = textOf(s_.table[static_cast<std::size_t>(entry.peer)].host);
  Notice notice{
      entry.peer, ncclRemoteError, host,
      untold
          ? fmt::format("Bootstrap: {} ended its connection to rank {} without a goodbye ({}): has its process died?",
                        describeLocked(entry.peer), options_.rank, how)
          : fmt::format("Bootstrap: the connection from rank {} to {} at {} ended ({}) before all messages had gone "
                        "out: has that process died, or is its host overloaded?",
                        options_.rank, describeLocked(entry.peer), entry.link->peer().text(), how)};
  s_.suspicions.push_back({entry.peer, std::move(notice), Deadline::in(kEchoGrace)});
}

void ConnectionLoop::tellSuspicions() {
  std::vector<Suspicion> due;
  std::erase_if(s_.suspicions, [&](const Suspicion& suspicion) {
    if (!suspicion.due.expired()) return false;
    due.push_back(suspicion);
    return true;
  });
  for (Suspicion& suspicion : due) {
    if (!s_.failure && !s_.left.contains(suspicion.peer)) record(std::move(suspicion.notice), 0, true);
  }
}

void ConnectionLoop::onSilence(Entry& entry) {
  entry.left = true;  // how it ends is no news any more
  if (entry.role == Role::Root) return onRootEnd({Link::End::Kind::Broken, ETIMEDOUT}, entry.link->peer());
  std::string host;
  if (!s_.table.empty()) host = textOf(s_.table[static_cast<std::size_t>(entry.peer)].host);
  const std::string who =
      host.empty() ? rankText(entry.peer, entry.link->peer().hostText()) : describeLocked(entry.peer);
  record(
      {entry.peer, ncclRemoteError, host,
       fmt::format(
           "Bootstrap: {} has given rank {} no sign of life for {} ms: is its process stopped (SIGSTOP, a "
           "debugger), its host frozen, or the network between them cut? TUTTI_PEER_TIMEOUT_MS sets the time allowed",
           who, options_.rank, options_.peerTimeout.count()),
       Cause::Silent},
      0, true);
}

void ConnectionLoop::tendNeighbours() {
  const auto now = SteadyClock::now();
  const auto since = now - tended_;
  if (since < signInterval(patience_)) return;
  tended_ = now;
  const SharedBytes nothing;
  // Who was away itself, stopped or without a processor, has not listened.
  const bool wasAway = since > options_.peerTimeout / 2;
  for (auto& [name, entry] : s_.links) {
    if ((entry.role != Role::Tree && entry.role != Role::Root) || entry.left || !entry.link->open()) continue;
    if (wasAway) entry.heard = now;
    sendOn(name, entry, FrameType::Alive, patienceTag(options_.peerTimeout), nothing);
    if (now - entry.heard <= options_.peerTimeout || entry.knows || s_.stopping) continue;
    if (entry.role == Role::Tree || !s_.rootDone) onSilence(entry);
  }
}

void ConnectionLoop::expireStrangers() {
  std::vector<Name> late;
  for (const auto& [name, entry] : s_.links) {
    if (!entry.link->open() && entry.proveBy.expired()) late.push_back(name);
  }
  for (const Name name : late) {
    Entry gone = std::move(s_.links.at(name));
    s_.links.erase(name);
    if (const auto out = s_.outgoing.find(gone.peer); out != s_.outgoing.end() && out->second == name)
      s_.outgoing.erase(out);
    poller_.remove(gone.link->fd());
    onEnd(gone);
  }
}

}  // namespace tutti::bootstrap
