// The kernels of device_micro, by name. All take one struct of params.h.
#include "bulk.cuh"
#include "fence.cuh"
#include "messages.cuh"
#include "pingpong.cuh"

namespace micro {

#define MICRO_KERNEL(Name, Params, most, ...)                                                         \
  extern "C" __global__ void __launch_bounds__(most, 1) Name(const __grid_constant__ Params params) { \
    __VA_ARGS__(params);                                                                              \
  }

constexpr unsigned kMost = 640;
constexpr unsigned kShipped = 512;  // threads of a block of the library's kernels

#define MICRO_COPY(Name, Access, batch) \
  MICRO_KERNEL(copy_##Name##_##batch, CopyParams, kMost, copyRanges<Access, batch>)
MICRO_COPY(shipped, Shipped, 1)
MICRO_COPY(shipped, Shipped, 2)
MICRO_COPY(shipped, Shipped, 4)
MICRO_COPY(shipped, Shipped, 6)
MICRO_COPY(shipped, Shipped, 8)
MICRO_COPY(volatile_global, VolatileGlobal, 4)
MICRO_COPY(volatile_global, VolatileGlobal, 8)
MICRO_COPY(relaxed_gpu_global, RelaxedGpuGlobal, 4)
MICRO_COPY(relaxed_gpu_global, RelaxedGpuGlobal, 8)
MICRO_COPY(plain, Plain, 4)
MICRO_COPY(plain, Plain, 8)
MICRO_COPY(plain_global, PlainGlobal, 4)
MICRO_COPY(plain_global, PlainGlobal, 8)
MICRO_COPY(nc_no_allocate, NcNoAllocate, 4)
MICRO_COPY(nc_no_allocate, NcNoAllocate, 8)
MICRO_COPY(no_allocate, NoAllocate, 4)
MICRO_KERNEL(copy_bulk, CopyParams, kMost, copyBulk)

#define MICRO_SUM(Name, Access, T, batch) \
  MICRO_KERNEL(sum_##Name##_##batch, CopyParams, kShipped, sumRanges<Access, T, batch>)
MICRO_SUM(f32_shipped, Shipped, float, 1)
MICRO_SUM(f32_shipped, Shipped, float, 2)
MICRO_SUM(f32_shipped, Shipped, float, 4)
MICRO_SUM(f32_shipped, Shipped, float, 6)
MICRO_SUM(f32_plain_global, PlainGlobal, float, 4)
MICRO_SUM(f32_plain_global, PlainGlobal, float, 6)
MICRO_SUM(bf16_shipped, Shipped, tutti::device::BFloat16, 1)
MICRO_SUM(bf16_shipped, Shipped, tutti::device::BFloat16, 2)
MICRO_SUM(bf16_shipped, Shipped, tutti::device::BFloat16, 4)
MICRO_SUM(bf16_shipped, Shipped, tutti::device::BFloat16, 6)
MICRO_SUM(bf16_plain_global, PlainGlobal, tutti::device::BFloat16, 4)
MICRO_SUM(bf16_plain_global, PlainGlobal, tutti::device::BFloat16, 6)

MICRO_KERNEL(publish_often, FenceParams, kMost, publishOften)
MICRO_KERNEL(barrier_often, BarrierParams, kMost, barrierOften)

template <class Wire>
using Flagged = tutti::device::PrimsFlagged<Wire, float, tutti::device::SumOp<float>>;
MICRO_KERNEL(ping_LL, PingParams, kShipped, pingPong<Flagged<tutti::device::WireLL>>)
MICRO_KERNEL(ping_LL128, PingParams, kShipped, pingPong<Flagged<tutti::device::WireLL128>>)
MICRO_KERNEL(ping_Simple, PingParams, kShipped,
             pingPong<tutti::device::PrimsSimple<float, tutti::device::SumOp<float>>>)
MICRO_KERNEL(ping_flag, FlagParams, kShipped, flagPingPong)

MICRO_KERNEL(stress_LL128, StressParams, kStressThreads, stressLines128)
MICRO_KERNEL(stress_LL, StressParams, kStressThreads, stressLines)
MICRO_KERNEL(stress_block_messages, StressParams, kStressThreads, stressBlockMessages)
MICRO_KERNEL(stress_thread_messages, StressParams, kStressThreads, stressThreadMessages)

MICRO_DEVICE void stamp(const StampParams& params) {
  if (threadIdx.x != 0 || blockIdx.x != 0) return;
  Stopwatch watch;
  watch.start();
  if (params.seen != nullptr) tutti::simt::Thread().storeRelaxedSys(params.seen, params.number);
  if (params.times != nullptr) watch.stop(params.times[params.index]);
}
MICRO_DEVICE void stampLong(const LongParams& params) {
  stamp(params.stamp);
}
MICRO_DEVICE void nothing(const StampParams&) {}
MICRO_KERNEL(launch_empty, StampParams, kShipped, nothing)
MICRO_KERNEL(launch_stamp, StampParams, kShipped, stamp)
MICRO_KERNEL(launch_long, LongParams, kShipped, stampLong)

/// Runs for a while; compares the two clocks.
MICRO_DEVICE void compareClocks(const ClockParams& params) {
  if (threadIdx.x != 0) return;
  Stopwatch watch;
  watch.start();
  const std::uint64_t begin = now();
  std::uint64_t step = ~std::uint64_t{0};
  for (std::uint64_t last = begin; last < begin + params.nanoseconds;) {
    const std::uint64_t next = now();
    if (next > last && next - last < step) step = next - last;
    last = next > last ? next : last;
  }
  watch.stop(params.times[blockIdx.x], step);
}
MICRO_KERNEL(clocks, ClockParams, kShipped, compareClocks)

}  // namespace micro
