// Whether the memory of a communicator's connections is there: ncclCommSuspend gives it back, ncclCommResume takes it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tutti::comm {

/// What becomes of it. A call begins a change, and its job, which may run later, ends it. Any thread.
class Residence {
 public:
  enum class State : std::uint8_t { Resident, Suspending, Suspended, Resuming };

  State state() const { return state_.load(std::memory_order_acquire); }
  /// Whether the change was possible: from Resident to Suspending, from Suspended to Resuming.
  bool begin(State change) {
    State from = change == State::Suspending ? State::Resident : State::Suspended;
    return state_.compare_exchange_strong(from, change, std::memory_order_acq_rel);
  }
  /// The change that was begun is done.
  void finish() {
    state_.store(state() == State::Suspending ? State::Suspended : State::Resident, std::memory_order_release);
  }
  /// It will not be made.
  void giveUp() {
    state_.store(state() == State::Suspending ? State::Resident : State::Suspended, std::memory_order_release);
  }

  /// Bytes of device memory that the last suspension gave back and no resumption has taken yet.
  std::size_t released() const { return released_.load(std::memory_order_relaxed); }
  void setReleased(std::size_t bytes) { released_.store(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<State> state_{State::Resident};
  std::atomic<std::size_t> released_{0};
};

}  // namespace tutti::comm
