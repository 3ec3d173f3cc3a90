// What it costs a block to publish what it has stored: all threads store, a barrier, one thread publishes, a barrier.
#pragma once

#include "access.cuh"

namespace micro {

/// What must have come back before the operation counts as done; 0 where nothing comes back.
MICRO_DEVICE std::uint64_t publish(Publish how, std::uint64_t* flag, std::uint64_t number) {
  const tutti::simt::Thread thread;
  std::uint64_t answer = 0;
  switch (how) {
    case Publish::Nothing:
      break;
    case Publish::FenceAcqRelGpu:
      asm volatile("fence.acq_rel.gpu;" ::: "memory");
      break;
    case Publish::FenceAcqRelSys:
      asm volatile("fence.acq_rel.sys;" ::: "memory");
      break;
    case Publish::FenceScGpu:
      asm volatile("fence.sc.gpu;" ::: "memory");
      break;
    case Publish::FenceScSys:
      asm volatile("fence.sc.sys;" ::: "memory");
      break;
    case Publish::StoreRelaxedSys:
    case Publish::EachThreadFencesSys:
      thread.storeRelaxedSys(flag, number);
      break;
    case Publish::StoreReleaseSys:
      thread.storeReleaseSys(flag, number);
      break;
    case Publish::StoreReleaseGpu:
      asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(flag), "l"(number) : "memory");
      break;
    case Publish::FenceSysStore:
      asm volatile("fence.acq_rel.sys;" ::: "memory");
      thread.storeRelaxedSys(flag, number);
      break;
    case Publish::FenceGpuStore:
      asm volatile("fence.acq_rel.gpu;" ::: "memory");
      thread.storeRelaxedSys(flag, number);
      break;
    case Publish::RedRelaxedSys:
      asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(global(flag)), "l"(number) : "memory");
      break;
    case Publish::RedReleaseSys:
      asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(global(flag)), "l"(number) : "memory");
      break;
    case Publish::AtomRelaxedSys:
      asm volatile("atom.relaxed.sys.global.add.u64 %0, [%1], %2;"
                   : "=l"(answer)
                   : "l"(global(flag)), "l"(number)
                   : "memory");
      break;
    case Publish::AtomReleaseSys:
      asm volatile("atom.release.sys.global.add.u64 %0, [%1], %2;"
                   : "=l"(answer)
                   : "l"(global(flag)), "l"(number)
                   : "memory");
      break;
    case Publish::LoadRelaxedSys:
      answer = thread.loadRelaxedSys(flag);
      break;
    case Publish::LoadAcquireSys:
      answer = thread.loadAcquireSys(flag);
      break;
  }
  return answer;
}

MICRO_DEVICE void publishOften(const FenceParams& params) {
  __shared__ std::uint64_t answered;
  const tutti::simt::Thread thread;
  const unsigned places = kFenceWindow / sizeof(Pack16);
  auto* data = reinterpret_cast<Pack16*>(params.data);
  unsigned place = threadIdx.x;
  std::uint64_t spent = 0;
  Stopwatch watch;
  __syncthreads();
  watch.start();
#pragma unroll 1
  for (unsigned i = 0; i < params.iterations; ++i) {
#pragma unroll 1
    for (unsigned k = 0; k < params.stores; ++k) {
      thread.storeVolatile(data + place, Pack16{{i, k}});
      place = (place + blockDim.x) % places;
    }
    if (params.publish == Publish::EachThreadFencesSys) asm volatile("fence.acq_rel.sys;" ::: "memory");
    thread.syncBlock();
    if (threadIdx.x == 0) {
      const std::uint64_t begin = cycles();
      // The store into shared memory waits for what comes back.
      thread.storeVolatile(&answered, publish(params.publish, params.flag, i + 1));
      spent += cycles() - begin;
    }
    thread.syncBlock();
  }
  if (threadIdx.x == 0) watch.stop(params.times[blockIdx.x], spent);
}

MICRO_DEVICE void barrierOften(const BarrierParams& params) {
  const tutti::simt::Thread thread;
  Stopwatch watch;
  __syncthreads();
  watch.start();
#pragma unroll 1
  for (std::uint64_t i = 0; i < params.iterations; ++i) thread.syncGroup(1, blockDim.x);
  if (threadIdx.x == 0) watch.stop(params.times[blockIdx.x]);
}

}  // namespace micro
