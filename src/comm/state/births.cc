#include "comm/state/births.h"

namespace tutti::comm {

Births::Birth::~Birth() {
  const std::lock_guard lock(all_.mutex_);
  all_.entries_.erase(place_);
}

Births::Birth Births::begin(Abort& child, Tie tie) {
  const std::lock_guard lock(mutex_);
  const Stop& stopped = tie == Tie::Health && !health_.why.ok() ? health_ : life_;
  if (!stopped.why.ok()) raise(child, stopped);
  return Birth(*this, entries_.insert(entries_.end(), {&child, tie}));
}

void Births::stop(Tie reason, Status why, const std::string& text) {
  const std::lock_guard lock(mutex_);
  Stop& stopped = reason == Tie::Health ? health_ : life_;
  if (!stopped.why.ok()) return;
  stopped = {why, text};
  for (const Birth::Entry& entry : entries_) {
    if (reason == Tie::Life || entry.tie == Tie::Health) raise(*entry.child, stopped);
  }
}

}  // namespace tutti::comm
