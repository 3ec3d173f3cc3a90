// The 16-bit floating types on the CPU: storage, exact conversions, rounding to nearest even; all NaNs become one, as
// on GPUs. Branch-free, so that loops over them become vector code on any processor. Device code includes number.h.
#pragma once

#include <bit>
#include <cstdint>

namespace tutti::device {

/// IEEE binary16.
struct Half {
  std::uint16_t bits;
};

/// The upper half of a binary32.
struct BFloat16 {
  std::uint16_t bits;
};

inline float toFloat(Half h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = h.bits & 0x7fffu;
  // The bits in place, the exponent too small by 127 - 15: the multiplication repairs it, subnormals included.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  const std::uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
}

inline float toFloat(BFloat16 b) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16);
}

inline Half toHalf(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t x = bits & 0x7fffffffu;
  // Normal: move the exponent, add half of the last kept bit, ties to even; a carry may well reach infinity.
  const std::uint32_t normal = (x - (112u << 23) + 0xfffu + ((x >> 13) & 1u)) >> 13;
  // Subnormal: adding 0.5 lets the adder align and round the mantissa. Clamped so that it cannot overflow.
  const float small = std::bit_cast<float>(x < 0x38800000u ? x : 0u) + 0.5f;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(small) - 0x3f000000u;
  std::uint32_t result = x < 0x38800000u ? subnormal : normal;
  result = (x >= 0x47800000u ? 0x7c00u : result) | sign;
  return Half{static_cast<std::uint16_t>(x > 0x7f800000u ? 0x7fffu : result)};
}

inline BFloat16 toBFloat16(float f) {
  const std::uint32_t x = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
  return BFloat16{static_cast<std::uint16_t>((x & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded)};
}

}  // namespace tutti::device
