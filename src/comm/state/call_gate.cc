#include "comm/state/call_gate.h"

namespace tutti::comm {

bool CallGate::awaitEmpty(Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (inside_ > 0) {
    if (deadline.expired()) return false;
    empty_.wait_for(lock, deadline.remaining(milliseconds(100)));
  }
  return true;
}

bool CallGate::alone() const {
  const std::lock_guard lock(mutex_);
  return inside_ <= 1;
}

void CallGate::enter() {
  const std::lock_guard lock(mutex_);
  ++inside_;
}

void CallGate::leave() {
  const std::lock_guard lock(mutex_);
  if (--inside_ == 0) empty_.notify_all();
}

}  // namespace tutti::comm
