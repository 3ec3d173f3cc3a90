#include "comm/state/op_tally.h"

#include <ctime>

namespace tutti::comm {

namespace {

/// A few milliseconds exact, and cheap.
std::uint64_t coarseMs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

}  // namespace

void OpTally::called(const Op& op, int nRanks) {
  const bool blockPerRank = op.func == ApiFunc::AllGather || op.func == ApiFunc::ReduceScatter ||
                            op.func == ApiFunc::AlltoAll || op.func == ApiFunc::Gather || op.func == ApiFunc::Scatter;
  const std::uint64_t blocks = blockPerRank ? static_cast<std::uint64_t>(nRanks) : 1;
  const std::uint64_t bytes = op.count * datatypeBytes(op.datatype);
  calls_[index(op.func)].add(bytes * blocks);
  lastFunc_.store(static_cast<std::int8_t>(op.func), std::memory_order_relaxed);
  lastBytes_.store(bytes, std::memory_order_relaxed);
  lastMs_.store(coarseMs(), std::memory_order_relaxed);
}

LastCall OpTally::last() const {
  const std::int8_t func = lastFunc_.load(std::memory_order_relaxed);
  if (func < 0) return {};
  const std::uint64_t now = coarseMs();
  const std::uint64_t at = lastMs_.load(std::memory_order_relaxed);
  return {static_cast<ApiFunc>(func), lastBytes_.load(std::memory_order_relaxed), now > at ? now - at : 0};
}

}  // namespace tutti::comm
