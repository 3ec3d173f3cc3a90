// Instructions on bits that PTX describes by pseudo-code.
#include <algorithm>
#include <array>
#include <cstdint>

#include "softgpu/ptx/support/functions.h"

namespace {

enum PermuteMode : std::uint32_t { Default, Forward4, Backward4, Replicate8, EdgeLeft, EdgeRight, Replicate16 };

/// Which of the eight bytes the byte `at` of the result is, by mode and the lowest two bits of the control.
std::uint32_t byteOf(PermuteMode mode, std::uint32_t control, std::uint32_t at) {
  const std::uint32_t by = control & 3;
  switch (mode) {
    case Forward4:
      return by + at;
    case Backward4:
      return (by + 8 - at) & 7;
    case Replicate8:
      return by;
    case EdgeLeft:
      return std::max(by, at);
    case EdgeRight:
      return std::min(by, at);
    case Replicate16:
      return (by & 1) * 2 + (at & 1);
    default:
      return control >> (4 * at) & 7;
  }
}

}  // namespace

extern "C" {
std::uint32_t ptx_permute(std::uint32_t a, std::uint32_t b, std::uint32_t control, std::uint32_t mode) {
  const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
  std::uint32_t result = 0;
  for (std::uint32_t at = 0; at < 4; ++at) {
    auto byte = static_cast<std::uint32_t>(bytes >> (8 * byteOf(static_cast<PermuteMode>(mode), control, at)) & 0xff);
    // The highest bit of a selector repeats the byte's sign.
    if (mode == Default && (control >> (4 * at + 3) & 1) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * at);
  }
  return result;
}

std::uint32_t ptx_find_nth(std::uint32_t mask, std::uint32_t base, std::uint32_t offset) {
  const auto count = static_cast<std::int32_t>(offset);
  if (count == 0) return base < 32 && (mask >> base & 1) != 0 ? base : ~0U;
  const int step = count > 0 ? 1 : -1;
  int left = count > 0 ? count : -count;
  for (auto at = static_cast<std::int64_t>(base); at >= 0 && at < 32; at += step) {
    if ((mask >> at & 1) != 0 && --left == 0) return static_cast<std::uint32_t>(at);
  }
  return ~0U;
}

std::uint64_t ptx_field(std::uint64_t a, std::uint32_t place, std::uint32_t length, std::uint32_t width) {
  if (length == 0 || place >= width) return 0;
  const std::uint64_t moved = a >> place;
  return length >= 64 ? moved : moved & ((std::uint64_t{1} << length) - 1);
}

std::uint64_t ptx_field_signed(std::int64_t a, std::uint32_t place, std::uint32_t length, std::uint32_t width) {
  if (length == 0) return 0;
  // The field's own highest bit, or the word's where it reaches beyond, fills the rest.
  const std::uint32_t last = width - 1;
  const std::uint32_t signAt = std::min(place + length - 1, last);
  const std::uint64_t sign = (a >> signAt & 1) != 0 ? ~std::uint64_t{0} : 0;
  std::uint64_t result = sign;
  for (std::uint32_t i = 0; i < length && i < width && place + i <= last; ++i) {
    const std::uint64_t bit = static_cast<std::uint64_t>(a) >> (place + i) & 1;
    result = (result & ~(std::uint64_t{1} << i)) | bit << i;
  }
  return result;
}

std::uint32_t ptx_mask(std::uint32_t place, std::uint32_t length, std::uint32_t wrap) {
  if (wrap != 0) {
    place &= 31;
    length &= 31;
  }
  const std::uint64_t ones = length >= 32 ? 0xffffffff : (std::uint64_t{1} << length) - 1;
  return place >= 32 ? 0 : static_cast<std::uint32_t>(ones << place);
}

std::uint32_t ptx_extend(std::uint32_t a, std::uint32_t length, std::uint32_t wrap) {
  if (wrap != 0) length &= 31;
  return length >= 32 ? a : a & ((1U << length) - 1);
}

std::uint32_t ptx_extend_signed(std::uint32_t a, std::uint32_t length, std::uint32_t wrap) {
  if (wrap != 0) length &= 31;
  if (length == 0 || length >= 32) return length == 0 ? 0 : a;
  const std::uint32_t by = 32 - length;
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(a << by) >> by);
}
}
