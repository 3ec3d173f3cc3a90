// Connections between survivors who make a new communicator out of this one. Nothing of what has failed here counts
// for them; a failure among them is theirs alone.
#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "bootstrap/loop/connection_loop.h"
#include "bootstrap/loop/invitations.h"

namespace tutti::bootstrap {
namespace {

/// What a rank has said before it was lost may still be on its way on another connection.
constexpr auto kLossGrace = milliseconds(500);

}  // namespace

bool ConnectionLoop::sendKin(int peer, int tag, const SharedBytes& payload) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, entry] : s_.links) {
    // One that has said goodbye is of an exchange before this one, and not closed yet.
    if (entry.role != Role::KinOut || entry.peer != peer || entry.left || entry.link->end()) continue;
    sendOn(name, entry, FrameType::Kin, tag, payload);
    return true;
  }
  return false;
}

std::optional<Frame> ConnectionLoop::takeKinLocked(int peer, int tag) {
  const auto queue = s_.queues.find(QueueKey{Channel::Kin, peer, tag});
  if (queue == s_.queues.end()) return std::nullopt;
  Frame frame = std::move(queue->second.front());
  queue->second.pop_front();
  if (queue->second.empty()) s_.queues.erase(queue);
  return frame;
}

std::optional<Frame> ConnectionLoop::takeKin(int peer, int tag) {
  const std::lock_guard lock(mutex_);
  return takeKinLocked(peer, tag);
}

bool ConnectionLoop::hasKin(int peer, int tag) const {
  const std::lock_guard lock(mutex_);
  return s_.queues.contains(QueueKey{Channel::Kin, peer, tag});
}

bool ConnectionLoop::kinLostLocked(int peer) const {
  const auto lost = s_.lostKin.find(peer);
  return lost != s_.lostKin.end() && lost->second.told.expired();
}

bool ConnectionLoop::kinArrivesBy(int peer, int tag, Deadline deadline, const Abort& abort) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (abort.raised() || s_.queues.contains(QueueKey{Channel::Kin, peer, tag}) || kinLostLocked(peer)) return true;
    if (deadline.expired()) return false;
    changed_.wait_until(lock, deadline.earlierOf(Deadline::in(kLookAtAbort)).when());
  }
}

Result<Frame> ConnectionLoop::awaitKin(int peer, int tag, Deadline deadline, const Abort& abort) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (abort.raised()) return abort.status();
    if (auto frame = takeKinLocked(peer, tag)) return std::move(*frame);
    if (kinLostLocked(peer)) {
      const std::string text = s_.lostKin.at(peer).text;
      const std::string who = describeLocked(peer);
      lock.unlock();
      return fail(ncclRemoteError, "Bootstrap: rank {} cannot go on to make a new communicator with {}: {}",
                  options_.rank, who, text);
    }
    if (deadline.expired()) {
      const std::string who = describeLocked(peer);
      lock.unlock();
      return fail(ncclRemoteError,
                  "Bootstrap: rank {} waited in vain for {} to make a new communicator with it: has that rank called "
                  "ncclCommShrink with the same list? TUTTI_BOOTSTRAP_TIMEOUT_SEC sets the time allowed",
                  options_.rank, who);
    }
    changed_.wait_until(lock, deadline.earlierOf(Deadline::in(kLookAtAbort)).when());
  }
}

void ConnectionLoop::closeKin(std::span<const int> peers, Status why) {
  const std::lock_guard lock(mutex_);
  const Notice notice = ownNotice(Cause::Failed, why.code(), why.ok() ? std::string() : lastErrorText());
  const Farewell farewell{options_.rank, 0};
  const FrameType type = why.ok() ? FrameType::Goodbye : FrameType::Notice;
  const SharedBytes words = std::make_shared<const Bytes>(why.ok() ? encodeValue(farewell) : encodeNotice(notice));
  for (auto& [name, entry] : s_.links) {
    const bool ours = std::find(peers.begin(), peers.end(), entry.peer) != peers.end();
    if (entry.role != Role::KinOut || !ours || entry.left) continue;
    sendOn(name, entry, type, 0, words);
    entry.left = true;  // closed by the other side once it has read that
  }
  for (const int peer : peers) s_.lostKin.erase(peer);
}

void ConnectionLoop::loseKin(int peer, std::string text) {
  s_.lostKin.try_emplace(peer, LostKin{std::move(text), Deadline::in(kLossGrace)});
  changed_.notify_all();
}

void ConnectionLoop::onKinFrame(Entry& entry, Frame frame) {
  const int tag = frame.header.tag;
  if (frame.type() == FrameType::Kin && entry.role == Role::KinIn) {
    return deliver(Channel::Kin, entry.peer, tag, std::move(frame));
  }
  if (frame.type() == FrameType::Goodbye) entry.left = entry.done = true;
  if (frame.type() != FrameType::Notice) return;
  const auto notice = decodeNotice(frame.payload);
  if (!notice) return;
  entry.left = entry.done = true;
  std::erase_if(s_.queues, [&](const auto& queue) {
    return std::get<Channel>(queue.first) == Channel::Kin && std::get<1>(queue.first) == entry.peer;
  });
  loseKin(entry.peer, notice->text);
}

void ConnectionLoop::onKinEnd(const Entry& entry) {
  if (entry.left || s_.stopping) return;
  loseKin(entry.peer, "its connection ended; has its process died?");
}

}  // namespace tutti::bootstrap
