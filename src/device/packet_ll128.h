// The LL128 protocol's packet: 4 lines of 128 bytes, what a warp writes or reads at once. See docs/protocols.md.
//
//   lane    0 .. 6   7        8 .. 14   15       16 .. 22   23       24 .. 30   31
//           data     d0 flag  data      d1 flag  data       d2 flag  data       d3 flag       16 bytes each
//
// Lane l of a line's 8 holds 16 bytes of data, the last one 8 bytes and the flag. Of a packet's 480 bytes the first 448
// lie in the full lanes, in order, the last 32 in d0 .. d3: every lane moves one aligned piece of the user's data, and
// a packet with little data needs only its first lines.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/work.h"

namespace tutti::device::ll128 {

inline constexpr std::uint32_t kLineBytes = 128;
inline constexpr std::uint32_t kLinePayload = 120;
inline constexpr std::uint32_t kLinesPerPacket = 4;
inline constexpr std::uint32_t kPacketBytes = kLineBytes * kLinesPerPacket;
inline constexpr std::uint32_t kPacketPayload = kLinePayload * kLinesPerPacket;
inline constexpr std::uint32_t kLanesPerLine = 8;
inline constexpr std::uint32_t kLaneBytes = 16;
/// Data of a line's full lanes.
inline constexpr std::uint32_t kLineFull = (kLanesPerLine - 1) * kLaneBytes;

/// Bytes of user data that a slot carries.
TUTTI_PURE std::uint32_t payloadOf(std::uint32_t slotBytes) {
  return slotBytes / kPacketBytes * kPacketPayload;
}

/// What marks the lines of a step; never returns.
TUTTI_PURE std::uint64_t flagOf(std::uint64_t step) {
  return step + 1;
}

TUTTI_PURE bool holdsFlag(std::uint32_t lane) {
  return lane % kLanesPerLine == kLanesPerLine - 1;
}

/// Where a lane's data lie in the packet's payload, and how many bytes they are.
TUTTI_PURE std::uint32_t offsetOf(std::uint32_t lane) {
  const std::uint32_t line = lane / kLanesPerLine;
  return holdsFlag(lane) ? kLinesPerPacket * kLineFull + line * 8
                         : line * kLineFull + lane % kLanesPerLine * kLaneBytes;
}
TUTTI_PURE std::uint32_t bytesOf(std::uint32_t lane) {
  return holdsFlag(lane) ? 8 : kLaneBytes;
}

/// Lines that a packet with `bytes` of data needs, at least one.
TUTTI_PURE std::uint32_t linesFor(std::uint64_t bytes) {
  if (bytes > std::uint64_t{kLinesPerPacket - 1} * kLineFull) return kLinesPerPacket;
  return bytes == 0 ? 1 : (static_cast<std::uint32_t>(bytes) + kLineFull - 1) / kLineFull;
}

static_assert(payloadOf(600 << 10) == 576000 && payloadOf(600 << 10) % 512 == 0);
static_assert(offsetOf(6) == 96 && offsetOf(8) == 112 && offsetOf(30) == 432 && offsetOf(7) == 448 &&
              offsetOf(31) == 472);
static_assert(linesFor(0) == 1 && linesFor(112) == 1 && linesFor(113) == 2 && linesFor(336) == 3 && linesFor(337) == 4);

}  // namespace tutti::device::ll128
