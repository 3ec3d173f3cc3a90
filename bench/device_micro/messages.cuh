// Data first, then a flag in another line: does the reader of the flag find the data? As the Simple protocol does it,
// and without what orders the two, which shows whether the test can see anything.
#pragma once

#include "stress.cuh"

namespace micro {

inline constexpr unsigned kPacksPerThread = 4;
/// Said in a flag: the writer has ended.
inline constexpr std::uint64_t kLastStep = std::uint64_t{1} << 63;

/// One side of a channel: a flag with the steps written and one with those read. Steps begin at 1.
struct Channel {
  const Part& part;
  const StressParams& params;
  std::uint64_t* written;
  std::uint64_t* read;

  MICRO_DEVICE void post(std::uint64_t* flag, std::uint64_t value) const {
    params.ordered != 0 ? part.thread.storeReleaseSys(flag, value) : part.thread.storeRelaxedSys(flag, value);
  }
  MICRO_DEVICE std::uint64_t look(std::uint64_t* flag) const {
    return params.ordered != 0 ? part.thread.loadAcquireSys(flag) : part.thread.loadRelaxedSys(flag);
  }
  /// Polls a flag until it has reached a step; 0: took too long.
  MICRO_DEVICE std::uint64_t await(std::uint64_t* flag, std::uint64_t step) const {
    std::uint64_t value = 0;
    const Deadline limit(params.spinLimit);
    const bool came = limit.wait([&] { return (value = look(flag)) >= step; });
    if (!came) addTo(&part.counts->timedOut, std::uint64_t{1});
    return came ? value : 0;
  }
  MICRO_DEVICE bool isLast(std::uint64_t step) const { return step > params.rounds || part.deadline.over(); }
};

/// Where the packs of a thread lie: far apart, so that they go to different parts of the cache.
MICRO_DEVICE Pack16* messagePart(const Part& part, unsigned k) {
  return reinterpret_cast<Pack16*>(part.data) + k * blockDim.x + threadIdx.x;
}
MICRO_DEVICE void writePart(const Part& part, std::uint64_t step) {
#pragma unroll
  for (unsigned k = 0; k < kPacksPerThread; ++k) part.thread.storeVolatile(messagePart(part, k), Pack16{{step, step}});
}
/// How many packs are older than the step.
MICRO_DEVICE unsigned staleParts(const Part& part, std::uint64_t step) {
  Pack16 value[kPacksPerThread];
#pragma unroll
  for (unsigned k = 0; k < kPacksPerThread; ++k) value[k] = part.thread.loadVolatile(messagePart(part, k));
  unsigned stale = 0;
#pragma unroll
  for (unsigned k = 0; k < kPacksPerThread; ++k) stale += value[k].word[0] < step || value[k].word[1] < step;
  return stale;
}
MICRO_DEVICE void count(const Part& part, const StressCounts& seen) {
  addTo(&part.counts->checked, seen.checked);
  addTo(&part.counts->fresh, seen.fresh);
  addTo(&part.counts->torn, seen.torn);
  if (threadIdx.x == 0) part.counts->rounds = seen.rounds;
}

// --- a block writes, one thread posts; one thread waits, a block reads

MICRO_DEVICE void writeByBlock(const Channel& channel, std::uint64_t* shared) {
  const Part& part = channel.part;
#pragma unroll 1
  for (std::uint64_t step = 1;; ++step) {
    if (threadIdx.x == 0) {
      const bool free = channel.await(channel.read, step - 1) != 0 || step == 1;
      part.thread.storeVolatile(shared, !free ? kLastStep : channel.isLast(step) ? kLastStep : step);
    }
    __syncthreads();
    const bool ends = part.thread.loadVolatile(shared) == kLastStep;
    if (!ends) writePart(part, step);
    __syncthreads();
    if (threadIdx.x == 0) channel.post(channel.written, ends ? kLastStep : step);
    if (ends) return;
  }
}

MICRO_DEVICE void readByBlock(const Channel& channel, std::uint64_t* shared) {
  const Part& part = channel.part;
  StressCounts seen{};
#pragma unroll 1
  for (std::uint64_t step = 1;; ++step) {
    if (threadIdx.x == 0) {
      const std::uint64_t value = channel.await(channel.written, step);
      part.thread.storeVolatile(shared, value == 0 ? kLastStep : value);
    }
    __syncthreads();
    if (part.thread.loadVolatile(shared) == kLastStep) break;
    seen.torn += staleParts(part, step);
    seen.checked += kPacksPerThread;
    seen.fresh += kPacksPerThread;
    seen.rounds = step;
    __syncthreads();
    if (threadIdx.x == 0) channel.post(channel.read, step);
  }
  count(part, seen);
}

MICRO_DEVICE void stressBlockMessages(const StressParams& params) {
  __shared__ std::uint64_t shared;
  const Part part(params);
  const Channel channel{part, params, part.flags, part.flags + 16};
  part.writes ? writeByBlock(channel, &shared) : readByBlock(channel, &shared);
}

// --- each thread writes, posts, waits and reads for itself

MICRO_DEVICE void stressThreadMessages(const StressParams& params) {
  const Part part(params);
  std::uint64_t* flag = part.flags + threadIdx.x * 32;
  const Channel channel{part, params, flag, flag + 16};
  StressCounts seen{};
#pragma unroll 1
  for (std::uint64_t step = 1;; ++step) {
    if (part.writes) {
      const bool free = channel.await(channel.read, step - 1) != 0 || step == 1;
      if (!free || channel.isLast(step)) return channel.post(channel.written, kLastStep);
      writePart(part, step);
      channel.post(channel.written, step);
    } else {
      const std::uint64_t value = channel.await(channel.written, step);
      if (value == 0 || value == kLastStep) break;
      seen.torn += staleParts(part, step);
      seen.checked += kPacksPerThread;
      seen.fresh += kPacksPerThread;
      seen.rounds = step;
      channel.post(channel.read, step);
    }
  }
  count(part, seen);
}

}  // namespace micro
