// Waiting in tests for what comes soon.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "base/clock.h"

namespace tutti::test {

/// Long enough for any machine.
inline constexpr std::chrono::seconds kGenerous{20};

/// Calls `step` until it says true; false: it never did. Gives the processor away meanwhile, for one machine may run
/// many tests.
inline bool until(const std::function<bool()>& step) {
  constexpr int kYields = 1000;
  const Deadline deadline = Deadline::in(kGenerous);
  for (int turn = 0; !step(); ++turn) {
    if (deadline.expired()) return false;
    if (turn < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  return true;
}

}  // namespace tutti::test
