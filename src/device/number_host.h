// Arithmetic on elements on the CPU; the counterpart of number_cuda.h. Include number.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/float16_host.h"
#include "device/float8.h"

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
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// One NaN for all of them, whose sign and payload would depend on which operand came first; GPUs make the same of all in
/// binary32. So results do not depend on the order of two operands, which compilers change as well.
template <class T>
  requires std::is_floating_point_v<T>
inline T oneNan(T a) {
  return a == a ? a : std::bit_cast<T>(static_cast<BitsOf<T>>(~BitsOf<T>{0} >> 1));
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
  requires std::is_floating_point_v<T>
inline T larger(T a, T b) {
  const T equal = std::bit_cast<T>(std::bit_cast<BitsOf<T>>(a) & std::bit_cast<BitsOf<T>>(b));
  const T other = a == b ? equal : b;
  return oneNan((a > b) | (b != b) ? a : other);
}
template <class T>
  requires std::is_floating_point_v<T>
inline T lesser(T a, T b) {
  const T equal = std::bit_cast<T>(std::bit_cast<BitsOf<T>>(a) | std::bit_cast<BitsOf<T>>(b));
  const T other = a == b ? equal : b;
  return oneNan((a < b) | (b != b) ? a : other);
}

// Sums and products of two 16-bit floats are exact enough in binary32 that rounding twice equals rounding once.
inline Half add(Half a, Half b) { return toHalf(add(toFloat(a), toFloat(b))); }
inline Half multiply(Half a, Half b) { return toHalf(multiply(toFloat(a), toFloat(b))); }
inline BFloat16 add(BFloat16 a, BFloat16 b) { return toBFloat16(add(toFloat(a), toFloat(b))); }
inline BFloat16 multiply(BFloat16 a, BFloat16 b) { return toBFloat16(multiply(toFloat(a), toFloat(b))); }

inline Half larger(Half a, Half b) { return toHalf(larger(toFloat(a), toFloat(b))); }
inline Half lesser(Half a, Half b) { return toHalf(lesser(toFloat(a), toFloat(b))); }
inline BFloat16 larger(BFloat16 a, BFloat16 b) { return toBFloat16(larger(toFloat(a), toFloat(b))); }
inline BFloat16 lesser(BFloat16 a, BFloat16 b) { return toBFloat16(lesser(toFloat(a), toFloat(b))); }

// Where a GPU goes through binary16, binary32 gives the same bits: for all operands, tests/device/float8_test.cc.
template <int kE, int kM>
inline Float8<kE, kM> add(Float8<kE, kM> a, Float8<kE, kM> b) {
  return toFloat8<Float8<kE, kM>>(add(toFloat(a), toFloat(b)));
}
template <int kE, int kM>
inline Float8<kE, kM> multiply(Float8<kE, kM> a, Float8<kE, kM> b) {
  return toFloat8<Float8<kE, kM>>(multiply(toFloat(a), toFloat(b)));
}
template <int kE, int kM>
inline Float8<kE, kM> larger(Float8<kE, kM> a, Float8<kE, kM> b) {
  return toFloat8<Float8<kE, kM>>(larger(toFloat(a), toFloat(b)));
}
template <int kE, int kM>
inline Float8<kE, kM> lesser(Float8<kE, kM> a, Float8<kE, kM> b) {
  return toFloat8<Float8<kE, kM>>(lesser(toFloat(a), toFloat(b)));
}

}  // namespace tutti::device
