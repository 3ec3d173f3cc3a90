// The LL protocol's line: geometry and flags. See docs/protocols.md.
//
//   byte   0      4      8      12     16
//          | data | flag | data | flag |        one 16-byte store
//
// A reader that finds both flags of a line finds its data: each half of 8 bytes is whole on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/work.h"

namespace tutti::device::ll {

inline constexpr std::size_t kLineBytes = 16;
inline constexpr std::size_t kLinePayload = 8;

/// Steps after which the sender writes all lines of each slot once: no line is ever older than two epochs, far less
/// than the 2^32 steps after which a flag returns. In the first epoch lines that were not written yet are zero.
inline constexpr std::uint64_t kEpochSteps = std::uint64_t{1} << 30;

TUTTI_PURE std::uint32_t linesOf(std::uint32_t slotBytes) {
  return slotBytes / static_cast<std::uint32_t>(kLineBytes);
}
/// Bytes of user data that a slot carries.
TUTTI_PURE std::uint32_t payloadOf(std::uint32_t slotBytes) {
  return linesOf(slotBytes) * static_cast<std::uint32_t>(kLinePayload);
}

/// What marks the lines of a step.
TUTTI_PURE std::uint32_t flagOf(std::uint64_t step) {
  return static_cast<std::uint32_t>(step + 1);
}

/// Whether the sender writes all lines of the slot in this step.
TUTTI_PURE bool cleansSlot(std::uint64_t step) {
  return step >= kEpochSteps && step % kEpochSteps < kSteps;
}

/// A line as two words: data in the lower halves, flags in the upper ones.
TUTTI_PURE std::uint64_t wordOf(std::uint32_t data, std::uint32_t flag) {
  return std::uint64_t{flag} << 32 | data;
}
TUTTI_PURE std::uint32_t flagIn(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32);
}
TUTTI_PURE std::uint64_t dataIn(std::uint64_t first, std::uint64_t second) {
  return (first & 0xffffffffu) | second << 32;
}

static_assert(payloadOf(64 << 10) == 32 << 10);
static_assert(cleansSlot(kEpochSteps) && cleansSlot(kEpochSteps + 7) && !cleansSlot(kEpochSteps + 8));
static_assert(!cleansSlot(0) && !cleansSlot(kEpochSteps - 1), "fresh slots are clean");
static_assert(flagOf(~std::uint64_t{0}) == 0 && flagOf(0xffffffffu) == 0 && flagOf(0) == 1);
static_assert(dataIn(wordOf(1, 7), wordOf(2, 7)) == 0x200000001u);

}  // namespace tutti::device::ll
