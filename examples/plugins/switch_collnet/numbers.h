// Floating types of 8 and 16 bits: their values as binary32, and back, rounded to the nearest, ties to even.
//
//               bits  bias  largest        infinity  NaN (written)  too large becomes
//   Half        16    15    65504 (0x7bff) 0x7c00    0x7fff         infinity
//   BFloat16    16    127   3.4e38         0x7f80    0x7fff         infinity
//   Float8E4M3  8     7     448 (0x7e)     none      0x7f           the largest number
//   Float8E5M2  8     15    57344 (0x7b)   0x7c      0x7f           the largest number
//
// These are the conventions of GPUs and of NCCL's kernels. All NaNs become one.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace switch_collnet {

template <int kExponentBits, int kMantissaBits, bool kInfinity, bool kSaturates>
struct SmallFloat {
  static constexpr int kTotalBits = 1 + kExponentBits + kMantissaBits;
  static constexpr int kMantissa = kMantissaBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kSmallestExponent = 1 - kBias;  // of normal numbers; subnormal ones use it as well
  static constexpr bool kSaturating = kSaturates;
  static constexpr std::uint32_t kNan = (1u << (kTotalBits - 1)) - 1;  // magnitudes: all but the sign
  static constexpr std::uint32_t kInfinite = ((1u << kExponentBits) - 1) << kMantissaBits;
  static constexpr std::uint32_t kLargest = kInfinity ? kInfinite - 1 : kNan - 1;
  static constexpr bool kHasInfinity = kInfinity;

  std::conditional_t<kTotalBits == 8, std::uint8_t, std::uint16_t> bits;
};
using Half = SmallFloat<5, 10, true, false>;
using BFloat16 = SmallFloat<8, 7, true, false>;
using Float8E4M3 = SmallFloat<4, 3, false, true>;
using Float8E5M2 = SmallFloat<5, 2, true, true>;

/// The definition: (hidden bit + mantissa) * 2^exponent.
template <class F>
float valueOfBits(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & F::kNan;
  const int exponentField = static_cast<int>(magnitude >> F::kMantissa);
  const std::uint32_t hidden = exponentField > 0 ? 1u << F::kMantissa : 0;
  const std::uint32_t mantissa = magnitude & ((1u << F::kMantissa) - 1);
  const int exponent = exponentField > 0 ? exponentField - F::kBias : F::kSmallestExponent;
  float value = std::ldexp(static_cast<float>(hidden + mantissa), exponent - F::kMantissa);
  if (magnitude > F::kLargest) value = std::numeric_limits<float>::quiet_NaN();
  if (F::kHasInfinity && magnitude == F::kInfinite) value = std::numeric_limits<float>::infinity();
  return bits > F::kNan ? -value : value;
}

/// There are few enough of them for a table.
template <class F>
float toFloat(F number) {
  static const std::vector<float> table = [] {
    std::vector<float> values;
    for (std::uint32_t bits = 0; bits < 1u << F::kTotalBits; ++bits) values.push_back(valueOfBits<F>(bits));
    return values;
  }();
  return table[number.bits];
}

template <class F>
F fromFloat(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 31 << (F::kTotalBits - 1);
  const auto result = [&](std::uint32_t magnitude) { return F{static_cast<decltype(F::bits)>(magnitude | sign)}; };
  if (value != value) return F{static_cast<decltype(F::bits)>(F::kNan)};
  const std::uint32_t tooLarge = F::kSaturating ? F::kLargest : F::kInfinite;
  if (std::isinf(value)) return result(tooLarge);
  // In units of the last place that the small format has at this exponent, the value rounds to an integer. The integer
  // with its hidden bit, behind the exponent, is the result: a carry goes where it belongs by itself.
  const int exponent = std::max(static_cast<int>(bits >> 23 & 0xff) - 127, F::kSmallestExponent);
  const double unit = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + F::kMantissa - exponent) << 52);
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::fabs(static_cast<double>(value)) * unit));
  const std::uint32_t magnitude = (static_cast<std::uint32_t>(exponent - F::kSmallestExponent) << F::kMantissa) + units;
  return result(magnitude > F::kLargest ? tooLarge : magnitude);
}

}  // namespace switch_collnet
