// Two blocks that send a message to and fro by the primitives that ship, and two threads that do so with a bare word.
#pragma once

#include "access.cuh"
#include "device/prims/prims.h"

namespace micro {

/// The third block: the primitives know no clock, but leave when the abort word is set.
MICRO_DEVICE void endInTime(const PingParams& params) {
  if (threadIdx.x != 0) return;
  const tutti::simt::Thread thread;
  const Deadline deadline(params.limit);
  while (thread.loadRelaxedSys(params.done) < 2) {
    if (deadline.over()) {
      thread.storeRelaxedSys(params.abortWord, std::uint32_t{1});
      return;
    }
    __nanosleep(1000);
  }
}

template <class Prims>
MICRO_DEVICE void pingPong(const PingParams& params) {
  __shared__ tutti::device::GroupShared shared;
  const tutti::simt::Thread thread;
  if (blockIdx.x > 1) return endInTime(params);
  if (threadIdx.x == 0) thread.storeVolatile(&shared.aborted, std::uint32_t{0});
  thread.syncBlock();
  const bool first = blockIdx.x == 0;
  const tutti::device::Crew crew{thread, {thread.index(), thread.threads()}, 1, &shared, params.abortWord};
  Prims prims(crew, params.recv + blockIdx.x, params.send + blockIdx.x, tutti::device::SumOp<float>(), false);
  Stopwatch watch;
#pragma unroll 1
  for (unsigned i = 0; i < params.warm + params.rounds; ++i) {
    if (i == params.warm) watch.start();
    if (first) {
      prims.send(params.sent, params.elements);
      prims.recv(params.received, params.elements);
    } else {
      prims.recv(params.passed, params.elements);
      prims.send(params.passed, params.elements);
    }
  }
  if (first && threadIdx.x == 0) watch.stop(params.times[0]);
  prims.finish();
  if (threadIdx.x == 0) atomicAdd_system(params.done, 1u);
}

MICRO_DEVICE bool passFlag(const FlagParams& params, const Deadline& deadline, bool first) {
  const tutti::simt::Thread thread;
  std::uint64_t* mine = first ? params.back : params.there;
  std::uint64_t* theirs = first ? params.there : params.back;
  const bool ordered = params.ordered != 0;
  const auto post = [&](std::uint64_t value) {
    ordered ? thread.storeReleaseSys(theirs, value) : thread.storeRelaxedSys(theirs, value);
  };
#pragma unroll 1
  for (std::uint64_t i = 1; i <= params.rounds; ++i) {
    if (first) post(i);
    const bool came =
        deadline.wait([&] { return (ordered ? thread.loadAcquireSys(mine) : thread.loadRelaxedSys(mine)) >= i; });
    if (!came) return false;
    if (!first) post(i);
  }
  return true;
}

MICRO_DEVICE void flagPingPong(const FlagParams& params) {
  if (threadIdx.x != 0) return;
  const Deadline deadline(params.limit);
  Stopwatch watch;
  watch.start();
  const bool came = passFlag(params, deadline, blockIdx.x == 0);
  if (blockIdx.x == 0) watch.stop(params.times[0], came ? 0 : 1);
}

}  // namespace micro
