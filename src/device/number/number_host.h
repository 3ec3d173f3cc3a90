// Arithmetic on elements on the CPU; the counterpart of number_cuda.h. Include number.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "device/number/float16_host.h"
#include "device/number/float8.h"

namespace tutti::device {

/// What one operation works on within a pack: the element itself on a CPU.
template <class T>
using LaneOf = T;

/// Types whose code must not be multiplied by unrolling: none, loops here are compact.
template <class T>
inline constexpr bool kLongCode = false;

template <class L, class T>
inline L broadcast(T value) {
  return value;
}

template <class T>
requires std::is_integral_v<T>
inline T add(T a, T b) {
  using Wrapping = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<Wrapping>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b)));
}
template <class T>
requires std::is_integral_v<T>
inline T multiply(T a, T b) {
  using Wrapping = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<Wrapping>(static_cast<Wrapping>(a) * static_cast<Wrapping>(b)));
}
template <class T>
requires std::is_integral_v<T>
inline T larger(T a, T b) {
  return a < b ? b : a;
}
template <class T>
requires std::is_integral_v<T>
inline T lesser(T a, T b) {
  return b < a ? b : a;
}

/// Truncates; `Divisor` is T or wider.
template <class T, class Divisor>
inline T divide(T a, Divisor by) {
  return static_cast<T>(a / by);
}

/// The bits of a float.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// One NaN for all of them, whose sign and payload would depend on which operand came first; GPUs make the same of all
/// in binary32. So results do not depend on the order of two operands, which compilers change as well. By integers, for
/// g++ makes no vectors of a choice between a float and a constant.
template <class T>
requires std::is_floating_point_v<T>
inline T oneNan(T a) {
  constexpr auto kInfinity = std::bit_cast<BitsOf<T>>(std::numeric_limits<T>::infinity());
  constexpr BitsOf<T> kNan = std::numeric_limits<BitsOf<T>>::max();
  const auto bits = std::bit_cast<BitsOf<T>>(a);
  return std::bit_cast<T>((bits & kNan) > kInfinity ? kNan : bits);
}

template <class T>
requires std::is_floating_point_v<T>
inline T add(T a, T b) {
  return oneNan(a + b);
}
template <class T>
requires std::is_floating_point_v<T>
inline T multiply(T a, T b) {
  return oneNan(a * b);
}
// A number wins over a NaN; b != b is "b is NaN". Of two zeros the positive one is larger.
template <class T>
inline T largerOrAnyNan(T a, T b) {
  const T equal = std::bit_cast<T>(std::bit_cast<BitsOf<T>>(a) & std::bit_cast<BitsOf<T>>(b));
  const T other = a == b ? equal : b;
  return (a > b) | (b != b) ? a : other;
}
template <class T>
inline T lesserOrAnyNan(T a, T b) {
  const T equal = std::bit_cast<T>(std::bit_cast<BitsOf<T>>(a) | std::bit_cast<BitsOf<T>>(b));
  const T other = a == b ? equal : b;
  return (a < b) | (b != b) ? a : other;
}
template <class T>
requires std::is_floating_point_v<T>
inline T larger(T a, T b) {
  return oneNan(largerOrAnyNan(a, b));
}
template <class T>
requires std::is_floating_point_v<T>
inline T lesser(T a, T b) {
  return oneNan(lesserOrAnyNan(a, b));
}

// Sums and products of two 16-bit floats are exact enough in binary32 that rounding twice equals rounding once.
// Of all NaNs the conversions make one.
inline Half add(Half a, Half b) {
  return toHalf(toFloat(a) + toFloat(b));
}
inline Half multiply(Half a, Half b) {
  return toHalf(toFloat(a) * toFloat(b));
}
inline BFloat16 add(BFloat16 a, BFloat16 b) {
  return toBFloat16(toFloat(a) + toFloat(b));
}
inline BFloat16 multiply(BFloat16 a, BFloat16 b) {
  return toBFloat16(toFloat(a) * toFloat(b));
}

inline Half larger(Half a, Half b) {
  return toHalf(largerOrAnyNan(toFloat(a), toFloat(b)));
}
inline Half lesser(Half a, Half b) {
  return toHalf(lesserOrAnyNan(toFloat(a), toFloat(b)));
}
inline BFloat16 larger(BFloat16 a, BFloat16 b) {
  return toBFloat16(largerOrAnyNan(toFloat(a), toFloat(b)));
}
inline BFloat16 lesser(BFloat16 a, BFloat16 b) {
  return toBFloat16(lesserOrAnyNan(toFloat(a), toFloat(b)));
}

// Where a GPU goes through binary16, binary32 gives the same bits: for all operands,
// tests/device/number/float8_test.cc.
template <int kE, int kM>
inline Float8<kE, kM> add(Float8<kE, kM> a, Float8<kE, kM> b) {
  return toFloat8<Float8<kE, kM>>(toFloat(a) + toFloat(b));
}
template <int kE, int kM>
inline Float8<kE, kM> multiply(Float8<kE, kM> a, Float8<kE, kM> b) {
  return toFloat8<Float8<kE, kM>>(toFloat(a) * toFloat(b));
}
template <int kE, int kM>
inline Float8<kE, kM> larger(Float8<kE, kM> a, Float8<kE, kM> b) {
  return toFloat8<Float8<kE, kM>>(largerOrAnyNan(toFloat(a), toFloat(b)));
}
template <int kE, int kM>
inline Float8<kE, kM> lesser(Float8<kE, kM> a, Float8<kE, kM> b) {
  return toFloat8<Float8<kE, kM>>(lesserOrAnyNan(toFloat(a), toFloat(b)));
}

}  // namespace tutti::device
