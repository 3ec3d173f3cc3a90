#include "comm/state/births.h"

namespace tutti::comm {

Births::Birth::~Birth() {
  const std::lock_guard lock(all_.mutex_);
  all_.entries_.erase(place_);
}

const Births::Stop& Births::reasonFor(Tie tie) {
  const Stop& own = stopOf(tie);
  return tie == Tie::Health && own.why.ok() ? stopOf(Tie::Life) : own;
}

Births::Birth Births::begin(Abort& child, Tie tie) {
  const std::lock_guard lock(mutex_);
  const Stop& stopped = reasonFor(tie);
  if (!stopped.why.ok()) raise(child, stopped);
  return Birth(*this, entries_.insert(entries_.end(), {&child, tie}));
}

void Births::stop(Tie reason, Status why, const std::string& text) {
  const std::lock_guard lock(mutex_);
  Stop& stopped = stopOf(reason);
  if (!stopped.why.ok()) return;
  stopped = {why, text};
  for (const Birth::Entry& entry : entries_) {
    const bool tied = entry.tie == reason || (reason == Tie::Life && entry.tie == Tie::Health);
    if (tied) raise(*entry.child, stopped);
  }
}

}  // namespace tutti::comm
