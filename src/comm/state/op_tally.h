// What a communicator has done since it was made, for people who watch it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "comm/plan/op.h"
#include "device/work.h"

namespace tutti::comm {

/// Operations and their bytes.
struct OpCount {
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;  ///< of the larger of a rank's two buffers, as benchmarks count the size of an operation
};

/// The call that was made last.
struct LastCall {
  std::optional<ApiFunc> func;  ///< nothing: there was none
  std::uint64_t bytes = 0;      ///< of its count and type
  std::uint64_t ageMs = 0;
};

/// Counters that only grow, for metrics and for reports on the job. Replays of graphs are not seen: what they launch
/// was counted when it was captured. Any thread; no lock, no fence: who reads while calls are made may be one behind,
/// and see the last call half.
class OpTally {
 public:
  /// `op` was called, in a communicator of `nRanks`, and moves data.
  void called(const Op& op, int nRanks);
  /// A collective was launched.
  void launched(device::Algorithm algorithm, device::Protocol protocol, std::uint64_t bytes) {
    kernels_[index(algorithm)][index(protocol)].add(bytes);
  }

  OpCount calls(ApiFunc func) const { return calls_[index(func)].read(); }
  LastCall last() const;
  OpCount kernels(device::Algorithm algorithm, device::Protocol protocol) const {
    return kernels_[index(algorithm)][index(protocol)].read();
  }

 private:
  class Counter {
   public:
    /// One thread calls a communicator at a time, so that no locked instruction is needed, which would cost a short
    /// call a few percent.
    void add(std::uint64_t bytes) {
      operations_.store(operations_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    }
    OpCount read() const {
      return {operations_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed)};
    }

   private:
    std::atomic<std::uint64_t> operations_{0};
    std::atomic<std::uint64_t> bytes_{0};
  };

  template <class Enum>
  static std::size_t index(Enum value) {
    return static_cast<std::size_t>(value);
  }

  std::array<Counter, kApiFuncs> calls_;
  std::atomic<std::int8_t> lastFunc_{-1};  // ApiFunc; -1: none
  std::atomic<std::uint64_t> lastBytes_{0};
  std::atomic<std::uint64_t> lastMs_{0};
  std::array<std::array<Counter, device::kProtocols>, device::kAlgorithms> kernels_;
};

}  // namespace tutti::comm
