// Slots of the protocols whose lines carry flags, as a host thread reads and writes them. A network carries only their
// content: flags follow from the step, which both ends count alike.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/work.h"

namespace tutti::net {

/// A slot of LL or LL128 lines, for one step. Kernels may be at work in it.
struct LineSlot {
  std::byte* data;      ///< aligned to 128 bytes
  std::uint32_t bytes;  ///< of the slot, flags included
  std::uint64_t step;
};

/// Bytes of content that a slot has room for, always whole units of lines.
std::uint32_t contentRoom(device::Protocol protocol, std::uint32_t slotBytes);

/// Lines that `bytes` of content take: one at least.
std::uint32_t linesFor(device::Protocol protocol, std::uint32_t bytes);

/// Takes the content out of the lines `taken`, `taken` + 1, … up to the first one that has not been written yet.
/// Returns how many have been taken by then; it is all when that is linesFor(bytes). `into`: room for all content of a
/// slot.
std::uint32_t takeLines(device::Protocol protocol, const LineSlot& slot, std::uint32_t bytes, std::uint32_t taken,
                        std::byte* into);

/// Writes the lines of `bytes` of content so that a reader never finds a flag before its data. `content` has room for
/// all content of a slot: what follows its end in the last lines is cleared first.
void putLines(device::Protocol protocol, const LineSlot& slot, std::uint32_t bytes, std::byte* content);

}  // namespace tutti::net
