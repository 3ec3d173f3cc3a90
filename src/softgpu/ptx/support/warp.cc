// What the lanes of a warp tell one another, over HostOps::exchange.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "softgpu/ptx/support/functions.h"

namespace {

using tutti::simt::HostThread;
constexpr std::uint32_t kLanes = 32;
constexpr std::uint64_t kThere = std::uint64_t{1} << 63;  ///< beside values of 32 bits: the lane has handed one in

std::uint32_t combined(std::uint32_t operation, std::uint32_t a, std::uint32_t b) {
  const auto left = static_cast<std::int32_t>(a);
  const auto right = static_cast<std::int32_t>(b);
  switch (operation) {
    case 0:
    case 8:
      return a + b;
    case 1:
      return std::min(a, b);
    case 2:
      return std::max(a, b);
    case 9:
      return static_cast<std::uint32_t>(std::min(left, right));
    case 10:
      return static_cast<std::uint32_t>(std::max(left, right));
    case 3:
    case 11:
      return a & b;
    case 4:
    case 12:
      return a | b;
    default:
      return a ^ b;
  }
}

}  // namespace

extern "C" {
void ptx_warp_sync(HostThread* self, std::uint32_t mask) {
  std::uint64_t values[kLanes];
  self->ops->exchange(self, mask, 0, values);
}

std::uint64_t ptx_shuffle(HostThread* self, std::uint32_t value, std::uint32_t by, std::uint32_t limits,
                          std::uint32_t mask, std::uint32_t mode) {
  const auto lane = static_cast<std::int32_t>(self->thread % kLanes);
  const auto b = static_cast<std::int32_t>(by & 31);
  const auto clamp = static_cast<std::int32_t>(limits & 31);
  const auto segment = static_cast<std::int32_t>(limits >> 8 & 31);
  const std::int32_t last = (lane & segment) | (clamp & ~segment);
  std::int32_t from = 0;
  bool inRange = false;
  switch (mode) {
    case 0:
      from = lane - b;
      inRange = from >= last;
      break;
    case 1:
      from = lane + b;
      inRange = from <= last;
      break;
    case 2:
      from = lane ^ b;
      inRange = from <= last;
      break;
    default:
      from = (lane & segment) | (b & ~segment);
      inRange = from <= last;
  }
  if (!inRange) from = lane;
  std::uint64_t values[kLanes];
  values[from] = value;  // of a lane that is not there a GPU gives anything
  self->ops->exchange(self, mask, value, values);
  return (values[from] & 0xffffffff) | (inRange ? std::uint64_t{1} << 32 : 0);
}

std::uint64_t ptx_votes(HostThread* self, std::uint32_t mask, std::uint32_t yes) {
  std::uint64_t values[kLanes] = {};
  self->ops->exchange(self, mask, kThere | yes, values);
  std::uint64_t votes = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0 || (values[lane] & kThere) == 0) continue;
    votes |= (values[lane] & 1) << lane | std::uint64_t{1} << (32 + lane);
  }
  return votes;
}

std::uint32_t ptx_match(HostThread* self, std::uint32_t mask, std::uint64_t value) {
  std::uint64_t values[kLanes];
  std::fill(values, values + kLanes, ~value);
  self->ops->exchange(self, mask, value, values);
  std::uint32_t same = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) != 0 && values[lane] == value) same |= 1U << lane;
  }
  return same;
}

std::uint32_t ptx_reduce(HostThread* self, std::uint32_t mask, std::uint32_t value, std::uint32_t operation) {
  std::uint64_t values[kLanes] = {};
  self->ops->exchange(self, mask, kThere | value, values);
  const std::uint32_t own = self->thread % kLanes;
  std::uint32_t result = value;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    if (lane == own || (mask >> lane & 1) == 0 || (values[lane] & kThere) == 0) continue;
    result = combined(operation, result, static_cast<std::uint32_t>(values[lane]));
  }
  return result;
}
}
