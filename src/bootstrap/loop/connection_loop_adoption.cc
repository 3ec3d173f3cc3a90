// Connections that mend the tree where ranks have left it: who calls whom is decided in tree_repair.h.
#include <algorithm>
#include <utility>

#include "bootstrap/loop/connection_loop.h"
#include "bootstrap/loop/patience.h"

namespace tutti::bootstrap {

void ConnectionLoop::tendTree(std::function<void()> mend) {
  const std::lock_guard lock(mutex_);
  s_.mend = std::move(mend);
  poller_.wake();  // somebody may have left already
}

void ConnectionLoop::mendTree(std::unique_lock<std::mutex>& lock) {
  if (!s_.mendAt.expired() || !s_.mend) return;
  s_.mendAt = Deadline::never();
  if (s_.stopping || s_.exiting || s_.failure) return;
  const std::function<void()> mend = s_.mend;
  lock.unlock();
  mend();
  lock.lock();
}

std::set<int> ConnectionLoop::leftRanks() const {
  const std::lock_guard lock(mutex_);
  std::set<int> ranks;
  for (const auto& [rank, leave] : s_.left) ranks.insert(rank);
  return ranks;
}

bool ConnectionLoop::isLinkedLocked(int peer) const {
  return std::any_of(s_.links.begin(), s_.links.end(), [peer](const auto& named) {
    return isOfTree(named.second.role) && named.second.peer == peer && !named.second.left;
  });
}

bool ConnectionLoop::hasParentLocked() const {
  return std::any_of(s_.links.begin(), s_.links.end(), [this](const auto& named) {
    return isOfTree(named.second.role) && named.second.peer < options_.rank && !named.second.left;
  });
}

bool ConnectionLoop::isLinked(int peer) const {
  const std::lock_guard lock(mutex_);
  return isLinkedLocked(peer);
}

bool ConnectionLoop::hasParent() const {
  const std::lock_guard lock(mutex_);
  return hasParentLocked();
}

/// A rank has one parent, and a lower one: whatever ranks know of each other, no circle comes about.
bool ConnectionLoop::settleAdopted(const Entry& entry) const {
  if (s_.stopping || s_.table.empty() || entry.peer == options_.rank) return false;
  return entry.peer > options_.rank ? !isLinkedLocked(entry.peer) : !hasParentLocked();
}

void ConnectionLoop::addAdopted(std::unique_ptr<Link> link, int peer) {
  const std::lock_guard lock(mutex_);
  Entry entry;
  entry.peer = peer;
  // Meanwhile it may have called this rank, or another one this one.
  if (!settleAdopted(entry)) return;
  watchSilence(link->fd(), options_.peerTimeout);
  entry.link = std::move(link);
  entry.role = Role::Adopted;
  const Name name = insert(std::move(entry));
  greet(name, s_.links.at(name));
  poller_.wake();
}

void ConnectionLoop::greet(Name name, Entry& entry) {
  sendOn(name, entry, FrameType::Alive, patienceTag(options_.peerTimeout), SharedBytes());
  if (s_.failure) {
    sendOn(name, entry, FrameType::Notice, 0, std::make_shared<const Bytes>(encodeNotice(*s_.failure)));
  }
  for (const auto& [rank, leave] : s_.left) {
    if (rank == entry.peer) continue;
    sendOn(name, entry, FrameType::Goodbye, 0,
           std::make_shared<const Bytes>(encodeValue(Farewell{rank, leave.exited ? 1 : 0})));
  }
  if (s_.silent.erase(entry.peer) > 0) flood(FrameType::Silence, entry.peer, std::make_shared<const Bytes>(), name);
  for (const auto& [rank, silence] : s_.silent) {
    sendOn(name, entry, FrameType::Silence, rank, std::make_shared<const Bytes>(encodeNotice(silence.notice)));
  }
}

/// One that the other side had no use for has ended before a word came.
void ConnectionLoop::onAdoptedEnd(const Entry& entry) {
  if (entry.confirmed) return onTreeEnd(entry);
  if (!s_.stopping && !hasParentLocked()) s_.mendAt = s_.mendAt.earlierOf(Deadline::in(milliseconds(100)));
}

}  // namespace tutti::bootstrap
