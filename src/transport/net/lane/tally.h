// What a task of the progress engine counts.
#pragma once

#include <atomic>
#include <cstdint>

#include "proxy/task.h"

namespace tutti::net {

/// TaskCounters of which one thread writes and any reads.
class Tally {
 public:
  void posted() { add(posted_, 1); }
  void done() { add(done_, 1); }
  void bytes(std::uint64_t n) { add(bytes_, n); }
  void stalled() { add(stalls_, 1); }
  proxy::TaskCounters read() const { return {get(posted_), get(done_), get(bytes_), get(stalls_)}; }

 private:
  using Count = std::atomic<std::uint64_t>;
  static std::uint64_t get(const Count& count) { return count.load(std::memory_order_relaxed); }
  static void add(Count& count, std::uint64_t n) { count.store(get(count) + n, std::memory_order_relaxed); }
  Count posted_{0}, done_{0}, bytes_{0}, stalls_{0};
};

}  // namespace tutti::net
