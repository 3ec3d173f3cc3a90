// Sets of channels of a communicator.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "device/work.h"

namespace tutti::comm {

/// Channels of a communicator, one bit each.
using ChannelMask = std::uint64_t;
static_assert(device::kMaxChannels <= 64);

/// Channels 0..n-1.
constexpr ChannelMask allChannels(int n) {
  return n >= 64 ? ~ChannelMask{0} : (ChannelMask{1} << n) - 1;
}
constexpr ChannelMask oneChannel(int channel) {
  return ChannelMask{1} << channel;
}
/// Their numbers, ascending.
inline std::vector<int> channelsIn(ChannelMask mask) {
  std::vector<int> channels;
  for (; mask != 0; mask &= mask - 1) channels.push_back(std::countr_zero(mask));
  return channels;
}

}  // namespace tutti::comm
