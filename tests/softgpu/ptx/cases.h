// Cases of instructions by what C++ says: all pairs and triples of edge values, and numbers in narrow formats.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "softgpu/ptx/run.h"

namespace tutti::softgpu::test {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;

inline const double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
inline const float kInf32 = std::numeric_limits<float>::infinity(), kNan32 = std::numeric_limits<float>::quiet_NaN();

/// Integers at which something changes.
template <typename T>
std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  const T middle = static_cast<T>(Limits::max() / 2 + 1);
  return {0,
          1,
          2,
          7,
          static_cast<T>(-1),
          static_cast<T>(-7),
          Limits::max(),
          Limits::min(),
          middle,
          static_cast<T>(0x5a5a3c3cc3c3a5a5ull),
          static_cast<T>(Limits::max() - 1)};
}

/// A case for each value, each pair or each triple of `values`, with the result that `expected` computes.
template <typename T, typename F>
std::vector<Case> singles(const std::vector<T>& values, F expected) {
  std::vector<Case> cases;
  for (const T a : values) cases.push_back({{Word(a)}, Word(expected(a))});
  return cases;
}
template <typename T, typename U, typename F>
std::vector<Case> pairs(const std::vector<T>& first, const std::vector<U>& second, F expected) {
  std::vector<Case> cases;
  for (const T a : first)
    for (const U b : second) cases.push_back({{Word(a), Word(b)}, Word(expected(a, b))});
  return cases;
}
template <typename T, typename F>
std::vector<Case> pairs(const std::vector<T>& values, F expected) {
  return pairs(values, values, expected);
}
template <typename T, typename U, typename F>
std::vector<Case> triples(const std::vector<T>& values, const std::vector<U>& third, F expected) {
  std::vector<Case> cases;
  for (const T a : values)
    for (const T b : values)
      for (const U c : third) cases.push_back({{Word(a), Word(b), Word(c)}, Word(expected(a, b, c))});
  return cases;
}

/// Cases of integers whose results need no more than 128 bits before they are cut to 64.
template <typename T, typename F>
std::vector<Case> integerPairs(F expected) {
  return pairs(edges<T>(), [=](T a, T b) { return static_cast<std::uint64_t>(expected(Wide{a}, Wide{b})); });
}
template <typename T, typename F>
std::vector<Case> integerTriples(F expected) {
  return triples(edges<T>(), edges<T>(),
                 [=](T a, T b, T c) { return static_cast<std::uint64_t>(expected(Wide{a}, Wide{b}, Wide{c})); });
}

template <typename T>
Wide clampTo(Wide value) {
  return std::min<Wide>(std::max<Wide>(value, std::numeric_limits<T>::min()), std::numeric_limits<T>::max());
}

/// Numbers at which something changes: zeros, ties, the ends of what is normal and of what is not, infinities, NaN.
template <typename F>
std::vector<F> numbers() {
  using Limits = std::numeric_limits<F>;
  std::vector<F> values = {0,
                           1,
                           F(1.5),
                           F(0.1),
                           F(2.5),
                           3,
                           F(1e10),
                           F(-12345.678),
                           Limits::max(),
                           Limits::min(),
                           Limits::denorm_min(),
                           Limits::min() / 4 * 3,
                           Limits::epsilon(),
                           1 + Limits::epsilon(),
                           Limits::infinity()};
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  values.push_back(Limits::quiet_NaN());
  return values;
}

/// What .ftz makes of an operand or a result: numbers that are not normal are zeros, with their sign.
inline float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

/// What .sat makes of a result; NaN becomes 0.
template <typename F>
F saturated(F value) {
  return value > 0 ? std::min<F>(value, 1) : F{0};
}

/// `function` with the processor rounding as `mode` (FE_*) says; it reads its operands from volatile variables.
template <typename F>
auto rounding(int mode, F function) {
  const int before = std::fegetround();
  std::fesetround(mode);
  const volatile auto result = function();
  std::fesetround(before);
  return std::remove_cv_t<decltype(result)>(result);
}

/// Of a narrow number: how many bits of exponent and of fraction.
struct Format {
  int exponent;
  int fraction;
};
inline constexpr Format kHalf{5, 10};
inline constexpr Format kBfloat{8, 7};

/// The bits, without a sign, of the number of `format` next to `magnitude`, rounded as std::nearbyint does at present;
/// beyond the largest they go on as if the format had more of exponent.
inline std::uint64_t magnitudeBits(Format format, double magnitude) {
  if (magnitude == 0) return 0;
  const int bias = (1 << (format.exponent - 1)) - 1;
  const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  const auto units = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(magnitude, format.fraction - exponent)));
  return units + (static_cast<std::uint64_t>(exponent + bias - 1) << format.fraction);
}

/// The bits of the number of `format` next to `value`, rounded likewise; beyond the largest: infinity, or the largest
/// where rounding is towards zero.
inline std::uint32_t encode(Format format, double value) {
  const std::uint32_t sign = std::signbit(value) ? 1u << (format.exponent + format.fraction) : 0;
  const std::uint32_t infinity = ((1u << format.exponent) - 1) << format.fraction;
  if (std::isnan(value)) return infinity | 1u << (format.fraction - 1);
  if (std::isinf(value)) return sign | infinity;
  const std::uint64_t bits = magnitudeBits(format, std::fabs(value));
  if (bits >= infinity) return sign | (std::fegetround() == FE_TOWARDZERO ? infinity - 1 : infinity);
  return sign | static_cast<std::uint32_t>(bits);
}

inline double decode(Format format, std::uint32_t bits) {
  const int bias = (1 << (format.exponent - 1)) - 1;
  const std::uint32_t fraction = bits & ((1u << format.fraction) - 1);
  const int exponent = static_cast<int>(bits >> format.fraction & ((1u << format.exponent) - 1));
  const double sign = (bits >> (format.exponent + format.fraction) & 1) != 0 ? -1 : 1;
  if (exponent == (1 << format.exponent) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - format.fraction);
  return sign * std::ldexp(fraction + (1u << format.fraction), exponent - bias - format.fraction);
}

inline std::uint16_t half(double value) {
  return static_cast<std::uint16_t>(encode(kHalf, value));
}
inline std::uint16_t bfloat(double value) {
  return static_cast<std::uint16_t>(encode(kBfloat, value));
}
inline std::uint32_t packed(std::uint16_t low, std::uint16_t high) {
  return low | std::uint32_t{high} << 16;
}

}  // namespace tutti::softgpu::test
