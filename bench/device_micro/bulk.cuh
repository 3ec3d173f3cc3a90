// One thread of a block that has the processor's copy engine move pieces through shared memory: what a block could
// reach without registers for data. Not what ships.
#pragma once

#include "copy.cuh"

namespace micro {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

inline constexpr unsigned kBulkBytes = 16 << 10;
inline constexpr unsigned kBulkStages = 8;
inline constexpr unsigned kBulkAhead = 4;  ///< loads under way; the other stages are being stored

MICRO_DEVICE unsigned sharedAddress(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

MICRO_DEVICE void initBarrier(std::uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sharedAddress(barrier)) : "memory");
}

MICRO_DEVICE void loadBulk(void* to, const void* from, std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(barrier)), "r"(kBulkBytes)
               : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   sharedAddress(to)),
               "l"(__cvta_generic_to_global(from)), "r"(kBulkBytes), "r"(sharedAddress(barrier))
               : "memory");
}

MICRO_DEVICE void storeBulk(void* to, const void* from) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
               "r"(sharedAddress(from)), "r"(kBulkBytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

MICRO_DEVICE bool arrived(std::uint64_t* barrier, unsigned parity) {
  unsigned done;
  asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(done)
               : "r"(sharedAddress(barrier)), "r"(parity)
               : "memory");
  return done != 0;
}

/// All pieces of this block, by its first thread. Spans are multiples of chunks, those of pieces.
MICRO_DEVICE void copyBulk(const CopyParams& params) {
  extern __shared__ __align__(128) char stages[];
  __shared__ std::uint64_t barriers[kBulkStages];
  if (threadIdx.x != 0) return;
  const char* from = params.from + blockIdx.x * params.fromStride;
  char* to = params.to + blockIdx.x * params.toStride;
  const std::uint64_t pieces = params.passes * params.chunk / kBulkBytes;
  const Deadline deadline(std::uint64_t{1} << 30);
  for (unsigned i = 0; i < kBulkStages; ++i) initBarrier(&barriers[i]);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  Round loads(params.fromSpan, kBulkBytes);
  Round stores(params.toSpan, kBulkBytes);
  Stopwatch watch;
  watch.start();
#pragma unroll 1
  for (std::uint64_t i = 0; i < pieces + kBulkAhead; ++i) {
    if (i < pieces) {
      // The stage's last store was begun kBulkStages - kBulkAhead stores ago.
      asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kBulkStages - kBulkAhead - 1) : "memory");
      const unsigned stage = i % kBulkStages;
      loadBulk(stages + stage * kBulkBytes, from + loads.next(), &barriers[stage]);
    }
    if (i < kBulkAhead) continue;
    const std::uint64_t piece = i - kBulkAhead;
    const unsigned stage = piece % kBulkStages;
    const unsigned parity = piece / kBulkStages % 2;
    if (!deadline.wait([&] { return arrived(&barriers[stage], parity); })) break;
    storeBulk(to + stores.next(), stages + stage * kBulkBytes);
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  watch.stop(params.times[blockIdx.x], deadline.over() ? 1 : 0);
}

#else

MICRO_DEVICE void copyBulk(const CopyParams&) {
  asm volatile("trap;");
}

#endif

}  // namespace micro
