// The loop's thread: accepting, reading, noticing who is gone.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <thread>
#include <utility>

#include "base/log.h"
#include "bootstrap/link/paced_listener.h"
#include "bootstrap/loop/connection_loop.h"
#include "bootstrap/loop/patience.h"

namespace tutti::bootstrap {
namespace {

/// Connections whose clients have shown a pass and not proved themselves yet, besides those that all ranks may open at
/// once: a pass may have been overheard.
constexpr std::size_t kMaxUnproven = 256;
/// How long word of a failure may take to come over the tree after a rank that has heard of it closed its connections.
constexpr auto kEchoGrace = milliseconds(2000);
/// Before the loop goes on without host memory, which it may be short of for a while only.
constexpr auto kShortage = milliseconds(10);

}  // namespace

milliseconds ConnectionLoop::nextLimit() {
  Deadline next = listener_->next();
  for (const auto& [name, entry] : s_.links) {
    if (!entry.link->open()) next = next.earlierOf(entry.proveBy);
    if (givesSigns(entry.role)) next = next.earlierOf(Deadline::at(tended_ + signInterval(patience_)));
  }
  for (const Suspicion& suspicion : s_.suspicions) next = next.earlierOf(suspicion.due);
  next = next.earlierOf(endOfSilence()).earlierOf(s_.mendAt);
  return next.isNever() ? milliseconds(-1) : next.remaining();
}

void ConnectionLoop::run() {
  std::vector<Poller::Event> events;
  bool stopped = false;
  while (!stopped) {
    try {
      turn(events);
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kShortage);
      const std::lock_guard lock(mutex_);
      onNoMemory();
    }
    const std::lock_guard lock(mutex_);
    stopped = s_.stopped;
  }
}

void ConnectionLoop::turn(std::vector<Poller::Event>& events) {
  std::unique_lock lock(mutex_);
  const milliseconds limit = nextLimit();
  lock.unlock();
  const int broken = poller_.wait(events, limit);
  lock.lock();
  if (broken != 0) onBroken(broken);
  for (const Poller::Event& event : events) onEvent(event);
  listener_->tend();
  expireStrangers();
  tendNeighbours();
  tellSuspicions();
  tellSilence();
  if (s_.stopping || s_.exiting) changed_.notify_all();
  tellStates(lock);  // first: what a rank says before it fails may be why
  tellOwner(lock);
  tellDepartures(lock);
  mendTree(lock);
}

void ConnectionLoop::tellOwner(std::unique_lock<std::mutex>& lock) {
  if (!s_.lost || s_.stopping) return;
  PeerLost lost = *std::exchange(s_.lost, std::nullopt);
  if (!options_.onPeerLost) return;
  lock.unlock();
  try {
    options_.onPeerLost(lost);
  } catch (const std::bad_alloc&) {
    lock.lock();
    if (!s_.lost) s_.lost = std::move(lost);  // once more
    throw;
  }
  lock.lock();
}

void ConnectionLoop::tellStates(std::unique_lock<std::mutex>& lock) {
  const std::deque<Frame> states = std::exchange(s_.states, {});
  if (states.empty() || s_.stopping || !options_.onState) return;
  lock.unlock();
  for (const Frame& state : states) options_.onState(state.header.tag, state.payload);
  lock.lock();
}

void ConnectionLoop::tellDepartures(std::unique_lock<std::mutex>& lock) {
  if (!std::exchange(s_.departed, false) || s_.stopping || !options_.onDeparture) return;
  lock.unlock();
  options_.onDeparture();
  lock.lock();
}

void ConnectionLoop::acceptAll() {
  if (!s_.key) return;
  const auto unproven = [](const auto& named) { return named.second.role == Role::Unauthenticated; };
  const std::size_t most = kMaxUnproven + static_cast<std::size_t>(options_.nRanks);
  auto count = static_cast<std::size_t>(std::count_if(s_.links.begin(), s_.links.end(), unproven));
  for (Arrival& arrival : listener_->take(*s_.key, options_.rank, kMaxRankFrame)) {
    if (count < most) {
      ++count;
    } else {
      s_.links.erase(std::find_if(s_.links.begin(), s_.links.end(), unproven));  // the oldest makes room
    }
    Entry entry;
    entry.proveBy = Deadline::in(provingTime(*arrival.link));
    entry.link = std::move(arrival.link);
    entry.place = std::move(arrival.place);
    insert(std::move(entry));
  }
}

/// How long a connection may take with the next step of its handshake.
milliseconds ConnectionLoop::provingTime(const Link& link) const {
  return link.passed() ? options_.handshakeTimeout : std::min(options_.handshakeTimeout, kUnprovenTime);
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
  if (entry.link->purpose() == Purpose::Kin) {
    entry.role = Role::KinIn;
    s_.lostKin.erase(peer);  // it tries again
    return true;
  }
  if (entry.link->purpose() == Purpose::Adopt) {
    if (!settleAdopted(entry)) return false;
    entry.role = Role::Adopted;
    watchSilence(entry.link->fd(), options_.peerTimeout);
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
    if (entry.silent > 0 && !frames.empty()) onSignOfLife(event.name, entry);
  }
  if (entry.place.taken() && entry.link->passed()) {
    entry.place.giveBack();
    entry.proveBy = Deadline::in(provingTime(*entry.link));
  }
  for (const Frame& frame : frames) {
    if (frame.type() == FrameType::Alive) patience_ = leastPatience(patience_, frame.header.tag);
  }
  bool keep = true;
  const bool settled = entry.role == Role::Unauthenticated && entry.link->open();
  if (settled) {
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
  if (keep && settled && entry.role == Role::Adopted) greet(event.name, entry);
  for (Frame& frame : frames) {
    if (keep) onFrame(event.name, entry, std::move(frame));
  }
  entry.link->flush();
  keep = keep && !entry.done;
  if (keep && !entry.link->end()) return poller_.setWrite(entry.link->fd(), event.name, entry.link->wantsWrite());
  // Then the other side has not ended: it is told, while there is a link to tell it by.
  const bool noMemory = entry.link->end() && entry.link->end()->noMemory();
  if (noMemory) onNoMemory();
  Entry gone = std::move(entry);
  s_.links.erase(found);
  if (const auto out = s_.outgoing.find(gone.peer); out != s_.outgoing.end() && out->second == event.name) {
    s_.outgoing.erase(out);
  }
  poller_.remove(gone.link->fd());
  if (!noMemory) onEnd(gone);
}

void ConnectionLoop::onFrame(Name name, Entry& entry, Frame frame) {
  switch (entry.role) {
    case Role::Root:
    case Role::Lookup:
      return onRootFrame(entry, std::move(frame));
    case Role::Adopted:
      entry.confirmed = true;
      [[fallthrough]];
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
    case Role::KinOut:
    case Role::KinIn:
      return onKinFrame(entry, std::move(frame));
    case Role::Unauthenticated:
      return;
  }
}

void ConnectionLoop::onTreeFrame(Name name, Entry& entry, Frame frame) {
  const int tag = frame.header.tag;
  if (frame.type() == FrameType::Message) return deliver(Channel::User, entry.peer, tag, std::move(frame));
  if (frame.type() == FrameType::Collective) return deliver(Channel::Collective, entry.peer, tag, std::move(frame));
  if (frame.type() == FrameType::Notice) return onNotice(name, entry, frame);
  if (frame.type() == FrameType::State) return onState(name, std::move(frame));
  if (frame.type() == FrameType::Silence) return onSilenceFrame(name, frame);
  if (frame.type() == FrameType::Present) return onPresent(name, frame);
  if (frame.type() == FrameType::Invite) return onInvite(name, frame);
  if (frame.type() == FrameType::Goodbye) onGoodbye(name, entry, std::move(frame));
}

void ConnectionLoop::onEnd(const Entry& entry) {
  switch (entry.role) {
    case Role::Unauthenticated:
      listener_->sawStranger();
      info(kBootstrap, "Bootstrap: rank {} turned away a client from {} that did not prove to be a rank", options_.rank,
           entry.link->peer().text());
      return;
    case Role::Root:
    case Role::Lookup:
      return entry.left ? void() : onRootEnd(entry.link->end().value_or(Link::End()), entry.link->peer());
    case Role::Adopted:
      return onAdoptedEnd(entry);
    case Role::Tree:
      return onTreeEnd(entry);
    case Role::PeerOut:
    case Role::PeerIn:
      return onPeerEnd(entry);
    case Role::KinOut:
    case Role::KinIn:
      return onKinEnd(entry);
  }
}

void ConnectionLoop::onTreeEnd(const Entry& entry) {
  if (entry.left || s_.stopping || wasSilent(entry.peer)) return;  // no news any more
  if (entry.knows) return onEndAfterFailure(entry.peer);
  const Link::End end = entry.link->end().value_or(Link::End());
  std::string host;
  if (!s_.table.empty()) host = textOf(s_.table[static_cast<std::size_t>(entry.peer)].host);
  const std::string who =
      host.empty() ? rankText(entry.peer, entry.link->peer().hostText()) : describeLocked(entry.peer);
  const std::string how = end.error != 0 ? errnoText(end.error) : "closed without a goodbye";
  Notice notice{
      entry.peer, ncclRemoteError, host,
      fmt::format("Bootstrap: {} died or lost its network: its connection to rank {} ended ({}); look for the first "
                  "error on that rank, or for the system's out-of-memory killer",
                  who, options_.rank, how),
      Cause::Died};
  if (!s_.table.empty()) return record(std::move(notice), 0, true);
  // Before all have joined a rank may give up before this connection carries its words: the root passes them on, and
  // watches it as well.
  s_.suspicions.push_back({entry.peer, std::move(notice), Deadline::in(kEchoGrace)});
}

/// The tree tells whether its process is gone, while it is whole: ranks that have left break it. And nobody else tells
/// of messages that were on their way there.
void ConnectionLoop::onPeerEnd(const Entry& entry) {
  const bool excused = entry.left || (entry.knows && s_.failure) || s_.left.contains(entry.peer);
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
