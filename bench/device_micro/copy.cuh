// Blocks that copy or add up ranges, by one way of access and with a number of 16-byte loads in flight per thread. The
// loops are those of prims/move.h.
#pragma once

#include "access.cuh"
#include "device/number/reduce_op.h"
#include "device/prims/prims_common.h"

namespace micro {

/// Where a pass of a block begins: goes round in a span.
class Round {
 public:
  MICRO_DEVICE Round(std::uint64_t span, std::uint64_t chunk) : span_(span), chunk_(chunk) {}
  MICRO_DEVICE std::uint64_t next() {
    const std::uint64_t at = at_;
    at_ = at_ + 2 * chunk_ > span_ ? 0 : at_ + chunk_;
    return at;
  }

 private:
  std::uint64_t span_;
  std::uint64_t chunk_;
  std::uint64_t at_ = 0;
};

/// Calls pass(fromOffset, toOffset) for all passes of this block, and says when.
template <class Pass>
MICRO_DEVICE void passesOf(const CopyParams& params, Pass pass) {
  const std::uint64_t from0 = blockIdx.x * params.fromStride;
  const std::uint64_t to0 = blockIdx.x * params.toStride;
  Round from(params.fromSpan, params.chunk);
  Round to(params.toSpan, params.chunk);
  Stopwatch watch;
  __syncthreads();
  watch.start();
#pragma unroll 1
  for (std::uint64_t i = 0; i < params.passes; ++i) {
    pass(from0 + from.next(), to0 + to.next());
#pragma unroll 1
    for (std::uint64_t k = 0; k < params.barriers; ++k) __syncthreads();
  }
  __syncthreads();
  if (threadIdx.x == 0) watch.stop(params.times[blockIdx.x]);
}

template <class Access, int kBatch>
MICRO_DEVICE void copyRanges(const CopyParams& params) {
  const tutti::simt::Group group{threadIdx.x, blockDim.x};
  passesOf(params, [&](std::uint64_t fromAt, std::uint64_t toAt) {
    const auto* from = reinterpret_cast<const Pack16*>(params.from + fromAt);
    auto* to = reinterpret_cast<Pack16*>(params.to + toAt);
    tutti::simt::forEachBatch<kBatch>(group, params.chunk / sizeof(Pack16),
                                      [=]<int kN>(std::size_t i, std::size_t stride) {
                                        Pack16 value[kN];
#pragma unroll
                                        for (int u = 0; u < kN; ++u) Access::load(value[u], from + i + u * stride);
#pragma unroll
                                        for (int u = 0; u < kN; ++u) Access::store(to + i + u * stride, value[u]);
                                      });
  });
}

template <class Access, class T, int kBatch>
MICRO_DEVICE void sumRanges(const CopyParams& params) {
  using Values = tutti::device::Pack<T, sizeof(Pack16)>;
  const tutti::simt::Group group{threadIdx.x, blockDim.x};
  passesOf(params, [&](std::uint64_t fromAt, std::uint64_t toAt) {
    const auto* own = reinterpret_cast<const Pack16*>(params.from + fromAt);
    const auto* other = reinterpret_cast<const Pack16*>(params.other + fromAt);
    auto* to = reinterpret_cast<Pack16*>(params.to + toAt);
    tutti::simt::forEachBatch<kBatch>(
        group, params.chunk / sizeof(Pack16), [=]<int kN>(std::size_t i, std::size_t stride) {
          Pack16 a[kN];
          Pack16 b[kN];
#pragma unroll
          for (int u = 0; u < kN; ++u) {
            Access::load(a[u], own + i + u * stride);
            Access::load(b[u], other + i + u * stride);
          }
#pragma unroll
          for (int u = 0; u < kN; ++u) {
            using tutti::device::fromBits;
            const Values sum = tutti::device::SumOp<T>().combine(fromBits<Values>(a[u]), fromBits<Values>(b[u]));
            Access::store(to + i + u * stride, fromBits<Pack16>(sum));
          }
        });
  });
}

}  // namespace micro
