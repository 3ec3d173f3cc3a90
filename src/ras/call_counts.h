// How many calls a rank has made, counted where they are made.
#pragma once

#include <array>
#include <atomic>
#include <ctime>

#include "ras/report/survey.h"

namespace tutti::ras {

/// Any thread; no lock, no fence: who reads while calls are made may be one behind, and see the last call half.
class CallCounts {
 public:
  /// A call of so many bytes was enqueued.
  void note(Func func, std::uint64_t bytes) {
    const auto index = static_cast<std::size_t>(func);
    counts_[index].fetch_add(1, std::memory_order_relaxed);
    lastFunc_.store(static_cast<std::int8_t>(func), std::memory_order_relaxed);
    lastBytes_.store(bytes, std::memory_order_relaxed);
    lastMs_.store(coarseMs(), std::memory_order_relaxed);
  }

  /// Into counts and lastOp.
  void read(RankState& state) const {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < kFuncs; ++i) {
      state.counts[i] = counts_[i].load(std::memory_order_relaxed);
      all += state.counts[i];
    }
    const std::uint64_t now = coarseMs();
    const std::uint64_t last = lastMs_.load(std::memory_order_relaxed);
    state.lastOp = {lastFunc_.load(std::memory_order_relaxed), lastBytes_.load(std::memory_order_relaxed), all,
                    now > last ? now - last : 0};
  }

 private:
  /// A few milliseconds exact, and cheap.
  static std::uint64_t coarseMs() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
  }

  std::array<std::atomic<std::uint64_t>, kFuncs> counts_{};
  std::atomic<std::int8_t> lastFunc_{-1};
  std::atomic<std::uint64_t> lastBytes_{0};
  std::atomic<std::uint64_t> lastMs_{0};
};

}  // namespace tutti::ras
