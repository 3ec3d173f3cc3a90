// Who is inside a communicator.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/clock.h"

namespace tutti::comm {

/// Counts the threads that are inside the library on behalf of a communicator, so that an abort from another thread
/// knows when nobody needs the memory any more. Any thread.
class CallGate {
 public:
  class Pass {
   public:
    explicit Pass(CallGate& gate) : gate_(&gate) { gate_->enter(); }
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (gate_ != nullptr) gate_->leave();
    }

   private:
    CallGate* gate_;
  };

  /// Waits until nobody is inside; false at the deadline.
  bool awaitEmpty(Deadline deadline);
  /// For who is inside: whether nobody else is.
  bool alone() const;

 private:
  void enter();
  void leave();
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  int inside_ = 0;
};

}  // namespace tutti::comm
