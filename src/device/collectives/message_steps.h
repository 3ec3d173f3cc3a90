// How messages are cut into steps, for kernels and for who counts beforehand what they will do.
#pragma once

#include <cstdint>

#include "device/conn_view.h"
#include "device/partition.h"
#include "device/simt/simt.h"

namespace tutti::device {

/// Content of a step of a message with `bytes` on the channel, by the Simple protocol; the last has what is left. On
/// the software GPU long slots hold half of a message: while one half is on its way, the other is being sent or
/// received.
TUTTI_DEVICE std::uint64_t stepBytes(const ConnFifos& conn, std::uint64_t bytes) {
  constexpr std::uint64_t kLeast = 128 << 10;
  const std::uint64_t slot = conn.slotBytes[static_cast<int>(Protocol::Simple)];
  if (!simt::kPulls || slot <= kLeast) return slot;
  const std::uint64_t half = (bytes / 2 + kGrainBytes - 1) / kGrainBytes * kGrainBytes;
  return smaller(slot, half < kLeast ? kLeast : half);
}

}  // namespace tutti::device
