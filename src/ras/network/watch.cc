#include "ras/network/watch.h"

#include <fmt/format.h>

#include <set>

namespace tutti::ras {

namespace {

constexpr std::size_t kMostWatched = 64;

std::string secondsText(SteadyClock::time_point since, SteadyClock::time_point now) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(now - since).count());
}

}  // namespace

/// Up to the first that answers; where none does, as many again and one, so that a node whose processes are all gone is
/// soon passed.
std::vector<const Member*> Watch::wanted() const {
  std::vector<const Member*> list;
  std::size_t most = 1;
  for (const Member* const member : members_.successors()) {
    if (list.size() == std::min(most, kMostWatched)) break;
    list.push_back(member);
    const auto known = watched_.find(member->facts.id);
    const bool silent = known != watched_.end() && known->second.unresponsive;
    if (!silent && list.size() == 1) break;
    const bool answers =
        known != watched_.end() && !silent && known->second.link != 0 && links_.find(known->second.link)->link.open();
    if (answers) break;
    if (silent) most = 2 * list.size() + 1;
  }
  return list;
}

void Watch::choose(SteadyClock::time_point now) {
  std::set<ProcessId> keep;
  for (const Member* const member : wanted()) {
    keep.insert(member->facts.id);
    watched_.try_emplace(member->facts.id, Watched{0, now, now});
  }
  std::erase_if(watched_, [&](const auto& entry) {
    const auto& [id, watched] = entry;
    if (keep.contains(id)) return false;
    if (Peer* const peer = links_.find(watched.link); peer != nullptr && watched.link != 0) {
      peer->link.send(Message::Rewire, {});
      peer->parting = true;
      peer->since = now;
      links_.settle(*peer);
    }
    return true;
  });
}

/// A process that was stopped, or a machine that slept, has heard nothing, and nobody else is to blame.
void Watch::noticePause(SteadyClock::time_point now) {
  const auto gap = now - lastTend_;
  if (lastTend_ != SteadyClock::time_point{} && gap > timers_.keepAlive + timers_.warn / 2) {
    for (auto& [id, watched] : watched_) watched.heard += gap;
  }
  lastTend_ = now;
}

void Watch::dial(const Member& member, Watched& watched, SteadyClock::time_point now) {
  if (watched.dialled) reporter_.say(EventKind::PeerRetry, member.facts.id);
  watched.dialled = true;
  watched.nextDial = now + timers_.retry;
  Peer& peer = links_.add(PeerLink(member.facts.address, member.key), Role::Watch, member.facts.id);
  watched.link = peer.name;
  const Member* const self = &members_.self();
  peer.link.send(Message::Intro, encodeTable(std::span(&self, 1), member.key));
}

void Watch::tendLink(ProcessId id, Watched& watched, SteadyClock::time_point now) {
  Peer* const peer = links_.find(watched.link);
  if (peer == nullptr || peer->link.ended()) return;
  if (!peer->link.open()) {
    if (now - peer->since < timers_.stuck) return;
    reporter_.say(EventKind::PeerInitTimeout, id, "no handshake for " + secondsText(peer->since, now));
    return peer->link.close("no handshake in time");
  }
  if (now - std::max(watched.heard, peer->since) > timers_.stuck) {
    const bool stuck = !peer->link.drained();
    reporter_.say(stuck ? EventKind::PeerSendStuck : EventKind::PeerKeepAliveTimeout, id,
                  "nothing heard for " + secondsText(watched.heard, now));
    return peer->link.close(stuck ? "nothing can be sent" : "no keep-alive in time");
  }
  if (now - peer->sent < timers_.keepAlive || !peer->link.drained()) return;
  peer->sent = now;
  ByteWriter out;
  out.put(members_.hash());
  peer->link.send(Message::KeepAlive, out.take());
  links_.settle(*peer);
}

void Watch::judge(ProcessId id, Watched& watched, SteadyClock::time_point now, std::vector<ProcessId>& dead) {
  const auto silence = now - watched.heard;
  if (silence > timers_.warn && !watched.unresponsive) {
    watched.unresponsive = true;
    reporter_.say(EventKind::PeerUnresponsive, id, "nothing heard for " + secondsText(watched.heard, now));
  }
  if (silence <= timers_.dead) return;
  reporter_.say(EventKind::PeerTimeoutDead, id, "nothing heard for " + secondsText(watched.heard, now));
  dead.push_back(id);
}

void Watch::tend(SteadyClock::time_point now) {
  noticePause(now);
  choose(now);
  std::vector<ProcessId> dead;
  for (auto& [id, watched] : watched_) {
    const Member* const member = members_.find(id);
    if (watched.link == 0 && now >= watched.nextDial) dial(*member, watched, now);
    tendLink(id, watched, now);
    judge(id, watched, now, dead);
  }
  for (const ProcessId id : dead) declareDead_(id);
}

void Watch::heard(Peer& peer, SteadyClock::time_point now) {
  const auto found = watched_.find(peer.process);
  if (found == watched_.end()) return;
  found->second.heard = now;
  if (!found->second.unresponsive) return;
  found->second.unresponsive = false;
  reporter_.say(EventKind::PeerRecovered, peer.process);
}

void Watch::ended(const Peer& peer, SteadyClock::time_point now) {
  if (peer.wasOpen && !peer.parting) reporter_.say(EventKind::PeerDisconnected, peer.process, peer.link.why());
  const auto found = watched_.find(peer.process);
  if (found == watched_.end() || found->second.link != peer.name) return;
  found->second.link = 0;
  found->second.nextDial = now + timers_.retry;
}

std::vector<ProcessId> Watch::unresponsive() const {
  std::vector<ProcessId> list;
  for (const auto& [id, watched] : watched_) {
    if (watched.unresponsive) list.push_back(id);
  }
  return list;
}

}  // namespace tutti::ras
