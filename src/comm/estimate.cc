#include "comm/estimate.h"

#include "device/kernel_name.h"

namespace tutti {

namespace {

constexpr double kLatencyUs = 3.0;              ///< one hop of a ring
constexpr double kBytesPerMicrosecond = 10e3;   ///< one link: 10 GB/s

/// How often the ring passes the data of one rank on, and how many bytes each hop carries.
struct RingCost {
  double hops;
  double bytes;
};

RingCost ringCost(ApiFunc func, double n, double bytes) {
  switch (func) {
    case ApiFunc::AllReduce: return {2 * (n - 1), 2 * (n - 1) / n * bytes};
    case ApiFunc::Reduce:
    case ApiFunc::Broadcast: return {n - 1, bytes};
    case ApiFunc::AllGather:
    case ApiFunc::ReduceScatter: return {n - 1, (n - 1) * bytes};
    case ApiFunc::AlltoAll:
    case ApiFunc::Gather:
    case ApiFunc::Scatter: return {1, (n - 1) * bytes};
    case ApiFunc::Send:
    case ApiFunc::Recv: break;
  }
  return {-1, 0};
}

}  // namespace

float estimateMicroseconds(int nRanks, std::span<const Op> ops) {
  float estimate = -1;
  for (const Op& op : ops) {
    const double bytes = static_cast<double>(op.count) * device::typeBytes(op.datatype);
    const RingCost cost = ringCost(op.func, nRanks, bytes);
    if (cost.hops < 0) continue;
    estimate = static_cast<float>(cost.hops * kLatencyUs + cost.bytes / kBytesPerMicrosecond);
  }
  return estimate;
}

}  // namespace tutti
