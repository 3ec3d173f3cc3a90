// The 8-bit floating types in both worlds: storage and exact conversions from and to binary32. Rounding is to nearest
// even and saturating: what is too large, infinities included, becomes the largest finite value. Branch-free, so that
// loops over them become vector code. GPUs with instructions for it use those instead (number_cuda.h).
//
//               bias  largest        smallest   infinity  NaN
//   e4m3        7     448   (0x7e)   2^-9       none      0x7f
//   e5m2        15    57344 (0x7b)   2^-16      0x7c      0x7d..0x7f
#pragma once

#include <cstdint>

#include "device/simt/simt.h"

namespace tutti::device {

template <int kExponent, int kMantissa>
struct Float8 {
  static constexpr int kExponentBits = kExponent;
  static constexpr int kMantissaBits = kMantissa;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr bool kHasInfinity = kExponent == 5;
  static constexpr std::uint32_t kLargest = kHasInfinity ? 0x7b : 0x7e;
  static constexpr std::uint32_t kNan = 0x7f;
  std::uint8_t bits;
};

using Float8E4M3 = Float8<4, 3>;
using Float8E5M2 = Float8<5, 2>;

TUTTI_HOST_DEVICE float floatOfBits(std::uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
TUTTI_HOST_DEVICE std::uint32_t bitsOfFloat(float value) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// `condition ? yes : no`, written so that no compiler makes a branch of it.
TUTTI_HOST_DEVICE std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  return no ^ ((yes ^ no) & (0u - static_cast<std::uint32_t>(condition)));
}

template <int kExponent, int kMantissa>
TUTTI_HOST_DEVICE float toFloat(Float8<kExponent, kMantissa> value) {
  using F = Float8<kExponent, kMantissa>;
  constexpr int kShift = 23 - kMantissa;
  constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - F::kBias) << 23;
  constexpr std::uint32_t kOne = 1u << 23;
  const std::uint32_t magnitude = value.bits & 0x7fu;
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x80u) << 24;
  const std::uint32_t normal = (magnitude << kShift) + kRebias;
  // Subnormal: give it the hidden bit that it lacks, and take that away again. (No subnormal binary32 is made: those
  // are slow.)
  const std::uint32_t subnormal = bitsOfFloat(floatOfBits(normal + kOne) - floatOfBits(kRebias + kOne));
  const std::uint32_t finite = select(magnitude < (1u << kMantissa), subnormal, normal);
  const std::uint32_t special = select(magnitude > F::kLargest, F::kHasInfinity ? 0x7f800000u : 0x7fc00000u, 0u);
  return floatOfBits(finite | special | sign);
}

/// A NaN becomes 0x7f, whatever its sign and payload.
template <class F>
TUTTI_HOST_DEVICE F toFloat8(float value) {
  constexpr int kShift = 23 - F::kMantissaBits;
  constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - F::kBias) << 23;
  constexpr std::uint32_t kSmallestNormal = kRebias + (1u << 23);
  // A power of two whose last bit is worth as much as the smallest subnormal: adding it makes the adder round.
  constexpr std::uint32_t kAligner = static_cast<std::uint32_t>(127 + 24 - F::kBias - F::kMantissaBits) << 23;
  const std::uint32_t bits = bitsOfFloat(value);
  const std::uint32_t x = bits & 0x7fffffffu;
  const std::uint32_t rounded = (x - kRebias + ((1u << (kShift - 1)) - 1) + ((x >> kShift) & 1u)) >> kShift;
  const std::uint32_t normal = rounded < F::kLargest ? rounded : F::kLargest;
  const bool small = x < kSmallestNormal;
  const std::uint32_t subnormal = bitsOfFloat(floatOfBits(select(small, x, 0u)) + floatOfBits(kAligner)) - kAligner;
  const std::uint32_t finite = select(small, subnormal, normal) | ((bits >> 24) & 0x80u);
  return F{static_cast<std::uint8_t>(select(x > 0x7f800000u, F::kNan, finite))};
}

}  // namespace tutti::device
