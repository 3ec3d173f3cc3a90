// Writers and readers that hurry: do flags arrive without their data? Every word of data holds the number of the step
// that wrote it, so data of an earlier step than their flag are torn or stale. Data of a later step are not: nothing
// keeps writers from going on.
#pragma once

#include "access.cuh"
#include "device/packet_ll.h"
#include "device/packet_ll128.h"

namespace micro {

/// This thread's part in a stress test.
struct Part {
  tutti::simt::Thread thread;
  bool writes;
  char* data;
  std::uint64_t* flags;
  StressCounts* counts;
  Deadline deadline;

  MICRO_DEVICE explicit Part(const StressParams& params)
      : writes(blockIdx.x % 2 == 0),
        data(params.data + blockIdx.x / 2 * kStressBytes),
        flags(params.flags + blockIdx.x / 2 * kStressFlagWords),
        counts(params.counts + blockIdx.x / 2),
        deadline(params.limit) {}

  /// Readers of lines say so when they have seen enough; writers leave then.
  MICRO_DEVICE void finish() const {
    __syncthreads();
    if (threadIdx.x == 0) thread.storeRelaxedSys(flags, std::uint64_t{1});
  }
  MICRO_DEVICE bool finished() const { return thread.loadRelaxedSys(flags) != 0 || deadline.over(); }
};

// --- LL128: a line of 128 bytes, written and read by eight lanes of one instruction

inline constexpr unsigned kPacketsPerWarp = 4;
inline constexpr std::uint64_t kStepMask = (std::uint64_t{1} << 48) - 1;

MICRO_DEVICE Pack16* packetPart(const Part& part, unsigned packet) {
  const unsigned at = part.thread.warp() * kPacketsPerWarp + packet;
  return reinterpret_cast<Pack16*>(part.data + at * tutti::device::ll128::kPacketBytes) + part.thread.lane();
}

MICRO_DEVICE void writeLines128(const Part& part) {
  namespace ll128 = tutti::device::ll128;
  const unsigned lane = part.thread.lane();
#pragma unroll 1
  for (std::uint64_t step = 0; step % 16 != 0 || !__any_sync(0xffffffffu, part.finished()); ++step) {
    const std::uint64_t flag = ll128::flagOf(step);
    const std::uint64_t word = std::uint64_t{lane} << 48 | flag;
    for (unsigned packet = 0; packet < kPacketsPerWarp; ++packet) {
      const Pack16 value{{word, ll128::holdsFlag(lane) ? flag : word}};
      part.thread.storeLine16({threadIdx.x, blockDim.x}, packetPart(part, packet), value);
    }
  }
}

MICRO_DEVICE void readLines128(const Part& part, std::uint64_t rounds) {
  namespace ll128 = tutti::device::ll128;
  const unsigned lane = part.thread.lane();
  StressCounts seen{};
  std::uint64_t last[kPacketsPerWarp] = {};
#pragma unroll 1
  for (; seen.rounds < rounds; ++seen.rounds) {
    if (seen.rounds % 64 == 0 && __any_sync(0xffffffffu, part.deadline.over())) break;
#pragma unroll
    for (unsigned packet = 0; packet < kPacketsPerWarp; ++packet) {
      const Pack16 value = part.thread.loadLine16({threadIdx.x, blockDim.x}, packetPart(part, packet));
      const std::uint64_t flag = part.thread.shuffle(value.word[1] & kStepMask, lane | (ll128::kLanesPerLine - 1));
      const std::uint64_t one = value.word[0] & kStepMask;
      const std::uint64_t two = value.word[1] & kStepMask;
      const unsigned mine = (one < flag || two < flag ? 1 : 0) + (one > flag || two > flag ? 2 : 0);
      const unsigned lines = 0xffu << (lane & ~7u);  // the lanes of this one's line
      const bool torn = (__ballot_sync(0xffffffffu, (mine & 1) != 0) & lines) != 0;
      const bool mixed = (__ballot_sync(0xffffffffu, (mine & 2) != 0) & lines) != 0;
      if (!ll128::holdsFlag(lane)) continue;
      seen.checked += 1;
      seen.fresh += flag != last[packet];
      seen.torn += torn;
      seen.mixed += mixed;
      last[packet] = flag;
    }
  }
  addTo(&part.counts->checked, seen.checked);
  addTo(&part.counts->fresh, seen.fresh);
  addTo(&part.counts->torn, seen.torn);
  addTo(&part.counts->mixed, seen.mixed);
  if (threadIdx.x == 0) part.counts->rounds = seen.rounds;
}

MICRO_DEVICE void stressLines128(const StressParams& params) {
  const Part part(params);
  if (part.writes) return writeLines128(part);
  readLines128(part, params.rounds);
  part.finish();
}

// --- LL: two words of 8 bytes, data and flag each, in one access of 16

inline constexpr unsigned kLinesPerThread = 4;

MICRO_DEVICE Pack16* threadLine(const Part& part, unsigned line) {
  return reinterpret_cast<Pack16*>(part.data) + line * blockDim.x + threadIdx.x;
}

MICRO_DEVICE void writeLines(const Part& part) {
  namespace ll = tutti::device::ll;
#pragma unroll 1
  for (std::uint64_t step = 0; step % 16 != 0 || !part.finished(); ++step) {
    const std::uint64_t word = ll::wordOf(ll::flagOf(step), ll::flagOf(step));
    for (unsigned line = 0; line < kLinesPerThread; ++line) {
      part.thread.storeVolatile(threadLine(part, line), Pack16{{word, word}});
    }
  }
}

MICRO_DEVICE void readLines(const Part& part, std::uint64_t rounds) {
  namespace ll = tutti::device::ll;
  StressCounts seen{};
  std::uint64_t last[kLinesPerThread] = {};
#pragma unroll 1
  for (; seen.rounds < rounds; ++seen.rounds) {
    if (seen.rounds % 64 == 0 && part.deadline.over()) break;
#pragma unroll
    for (unsigned line = 0; line < kLinesPerThread; ++line) {
      const Pack16 value = part.thread.loadVolatile(threadLine(part, line));
      const auto torn = [](std::uint64_t word) { return static_cast<std::uint32_t>(word) != ll::flagIn(word); };
      seen.checked += 1;
      seen.fresh += value.word[0] != last[line];
      seen.torn += torn(value.word[0]) || torn(value.word[1]);
      seen.mixed += value.word[0] != value.word[1];
      last[line] = value.word[0];
    }
  }
  addTo(&part.counts->checked, seen.checked);
  addTo(&part.counts->fresh, seen.fresh);
  addTo(&part.counts->torn, seen.torn);
  addTo(&part.counts->mixed, seen.mixed);
  if (threadIdx.x == 0) part.counts->rounds = seen.rounds;
}

MICRO_DEVICE void stressLines(const StressParams& params) {
  const Part part(params);
  if (part.writes) return writeLines(part);
  readLines(part, params.rounds);
  part.finish();
}

}  // namespace micro
