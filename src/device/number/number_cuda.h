// Arithmetic on elements, on pairs of small floats and on four bytes at once on a GPU; the counterpart of
// number_host.h. Include number.h.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/number/float8.h"

namespace tutti::device {

using Half = __half;
using BFloat16 = __nv_bfloat16;

template <class T>
struct Lane {
  using Type = T;
};
template <>
struct Lane<Half> {
  using Type = __half2;
};
template <>
struct Lane<BFloat16> {
  using Type = __nv_bfloat162;
};

/// Two neighbours, the first in the low byte.
template <class F>
struct Float8Pair {
  std::uint16_t bits;
};
template <int kE, int kM>
struct Lane<Float8<kE, kM>> {
  using Type = Float8Pair<Float8<kE, kM>>;
};

/// Four neighbouring bytes of an integer type, the first in the lowest.
template <class T>
struct ByteQuad {
  std::uint32_t bits;
};
template <>
struct Lane<std::int8_t> {
  using Type = ByteQuad<std::int8_t>;
};
template <>
struct Lane<std::uint8_t> {
  using Type = ByteQuad<std::uint8_t>;
};

/// What one operation works on within a pack: pairs of small floats, four bytes, else the element.
template <class T>
using LaneOf = typename Lane<T>::Type;

template <class L, class T>
__device__ __forceinline__ L broadcast(T value) {
  if constexpr (std::is_same_v<L, T>) {
    return value;
  } else if constexpr (std::is_same_v<T, Half>) {
    return __half2half2(value);
  } else if constexpr (std::is_integral_v<T>) {
    return L{static_cast<std::uint8_t>(value) * 0x01010101u};
  } else if constexpr (sizeof(T) == 1) {
    return L{static_cast<std::uint16_t>(value.bits * 0x101u)};
  } else {
    return __bfloat162bfloat162(value);
  }
}

template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
__device__ __forceinline__ T add(T a, T b) {
  using Wrapping = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
}
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
__device__ __forceinline__ T multiply(T a, T b) {
  using Wrapping = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<Wrapping>(a) * static_cast<Wrapping>(b));
}
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
__device__ __forceinline__ T larger(T a, T b) {
  return a < b ? b : a;
}
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
__device__ __forceinline__ T lesser(T a, T b) {
  return b < a ? b : a;
}

/// Truncates; `Divisor` is T or wider.
template <class T, class Divisor>
__device__ __forceinline__ T divide(T a, Divisor by) {
  return static_cast<T>(a / by);
}

template <class T>
__device__ __forceinline__ ByteQuad<T> add(ByteQuad<T> a, ByteQuad<T> b) {
  return {__vadd4(a.bits, b.bits)};
}
/// The low byte of a product needs the low bytes of its factors alone; what lies above them is cut off.
template <class T>
__device__ __forceinline__ ByteQuad<T> multiply(ByteQuad<T> a, ByteQuad<T> b) {
  const std::uint32_t low = __byte_perm(a.bits * b.bits, (a.bits >> 8) * (b.bits >> 8), 0x0040);
  const std::uint32_t high = __byte_perm((a.bits >> 16) * (b.bits >> 16), (a.bits >> 24) * (b.bits >> 24), 0x0040);
  return {__byte_perm(low, high, 0x5410)};
}
template <class T>
__device__ __forceinline__ ByteQuad<T> larger(ByteQuad<T> a, ByteQuad<T> b) {
  return {std::is_signed_v<T> ? __vmaxs4(a.bits, b.bits) : __vmaxu4(a.bits, b.bits)};
}
template <class T>
__device__ __forceinline__ ByteQuad<T> lesser(ByteQuad<T> a, ByteQuad<T> b) {
  return {std::is_signed_v<T> ? __vmins4(a.bits, b.bits) : __vminu4(a.bits, b.bits)};
}
template <class T, class Divisor>
__device__ __forceinline__ ByteQuad<T> divide(ByteQuad<T> a, Divisor by) {
  std::uint32_t result = 0;
#pragma unroll
  for (unsigned shift = 0; shift < 32; shift += 8) {
    const T quotient = divide(static_cast<T>(a.bits >> shift), by);
    result |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(quotient)) << shift;
  }
  return {result};
}

__device__ __forceinline__ float add(float a, float b) {
  return __fadd_rn(a, b);
}
__device__ __forceinline__ float multiply(float a, float b) {
  return __fmul_rn(a, b);
}
__device__ __forceinline__ float larger(float a, float b) {
  return fmaxf(a, b);
}
__device__ __forceinline__ float lesser(float a, float b) {
  return fminf(a, b);
}
__device__ __forceinline__ double add(double a, double b) {
  return __dadd_rn(a, b);
}
__device__ __forceinline__ double multiply(double a, double b) {
  return __dmul_rn(a, b);
}
__device__ __forceinline__ double larger(double a, double b) {
  return fmax(a, b);
}
__device__ __forceinline__ double lesser(double a, double b) {
  return fmin(a, b);
}

// The _rn forms are never merged with a neighbour: every step rounds.
__device__ __forceinline__ Half add(Half a, Half b) {
  return __hadd_rn(a, b);
}
__device__ __forceinline__ Half multiply(Half a, Half b) {
  return __hmul_rn(a, b);
}
__device__ __forceinline__ Half larger(Half a, Half b) {
  return __hmax(a, b);
}
__device__ __forceinline__ Half lesser(Half a, Half b) {
  return __hmin(a, b);
}
__device__ __forceinline__ __half2 add(__half2 a, __half2 b) {
  return __hadd2_rn(a, b);
}
__device__ __forceinline__ __half2 multiply(__half2 a, __half2 b) {
  return __hmul2_rn(a, b);
}
__device__ __forceinline__ __half2 larger(__half2 a, __half2 b) {
  return __hmax2(a, b);
}
__device__ __forceinline__ __half2 lesser(__half2 a, __half2 b) {
  return __hmin2(a, b);
}

__device__ __forceinline__ BFloat16 add(BFloat16 a, BFloat16 b) {
  return __hadd_rn(a, b);
}
__device__ __forceinline__ BFloat16 multiply(BFloat16 a, BFloat16 b) {
  return __hmul_rn(a, b);
}
__device__ __forceinline__ BFloat16 larger(BFloat16 a, BFloat16 b) {
  return __hmax(a, b);
}
__device__ __forceinline__ BFloat16 lesser(BFloat16 a, BFloat16 b) {
  return __hmin(a, b);
}
__device__ __forceinline__ __nv_bfloat162 add(__nv_bfloat162 a, __nv_bfloat162 b) {
  return __hadd2_rn(a, b);
}
__device__ __forceinline__ __nv_bfloat162 multiply(__nv_bfloat162 a, __nv_bfloat162 b) {
  return __hmul2_rn(a, b);
}
__device__ __forceinline__ __nv_bfloat162 larger(__nv_bfloat162 a, __nv_bfloat162 b) {
  return __hmax2(a, b);
}
__device__ __forceinline__ __nv_bfloat162 lesser(__nv_bfloat162 a, __nv_bfloat162 b) {
  return __hmin2(a, b);
}

// 8-bit floats are computed in binary16 and rounded back, saturating, after every operation.
template <class F>
inline constexpr __nv_fp8_interpretation_t kFloat8Kind = F::kHasInfinity ? __NV_E5M2 : __NV_E4M3;

/// Types computed step by step on this processor: long code that must not be multiplied by unrolling.
template <class T>
inline constexpr bool kLongCode = false;
template <int kE, int kM>
inline constexpr bool kLongCode<Float8<kE, kM>> = !simt::kConvertsFloat8;

template <class F>
__device__ __forceinline__ __half2 widen(Float8Pair<F> pair) {
  if constexpr (simt::kConvertsFloat8) {
    return __half2(__nv_cvt_fp8x2_to_halfraw2(pair.bits, kFloat8Kind<F>));
  } else {
    return __floats2half2_rn(toFloat(F{static_cast<std::uint8_t>(pair.bits & 0xffu)}),
                             toFloat(F{static_cast<std::uint8_t>(pair.bits >> 8)}));
  }
}
template <class F>
__device__ __forceinline__ Float8Pair<F> narrow(__half2 pair) {
  if constexpr (simt::kConvertsFloat8) {
    return {__nv_cvt_halfraw2_to_fp8x2(static_cast<__half2_raw>(pair), __NV_SATFINITE, kFloat8Kind<F>)};
  } else {
    const unsigned low = toFloat8<F>(__low2float(pair)).bits;
    const unsigned high = toFloat8<F>(__high2float(pair)).bits;
    return {static_cast<std::uint16_t>(low | high << 8)};
  }
}

template <class F>
__device__ __forceinline__ Float8Pair<F> add(Float8Pair<F> a, Float8Pair<F> b) {
  return narrow<F>(add(widen(a), widen(b)));
}
template <class F>
__device__ __forceinline__ Float8Pair<F> multiply(Float8Pair<F> a, Float8Pair<F> b) {
  return narrow<F>(multiply(widen(a), widen(b)));
}
template <class F>
__device__ __forceinline__ Float8Pair<F> larger(Float8Pair<F> a, Float8Pair<F> b) {
  return narrow<F>(larger(widen(a), widen(b)));
}
template <class F>
__device__ __forceinline__ Float8Pair<F> lesser(Float8Pair<F> a, Float8Pair<F> b) {
  return narrow<F>(lesser(widen(a), widen(b)));
}

// A single one is the first of a pair with zero.
template <int kE, int kM>
__device__ __forceinline__ Float8Pair<Float8<kE, kM>> pairOf(Float8<kE, kM> value) {
  return {value.bits};
}
template <class F>
__device__ __forceinline__ F firstOf(Float8Pair<F> pair) {
  return F{static_cast<std::uint8_t>(pair.bits & 0xffu)};
}
template <int kE, int kM>
__device__ __forceinline__ Float8<kE, kM> add(Float8<kE, kM> a, Float8<kE, kM> b) {
  return firstOf(add(pairOf(a), pairOf(b)));
}
template <int kE, int kM>
__device__ __forceinline__ Float8<kE, kM> multiply(Float8<kE, kM> a, Float8<kE, kM> b) {
  return firstOf(multiply(pairOf(a), pairOf(b)));
}
template <int kE, int kM>
__device__ __forceinline__ Float8<kE, kM> larger(Float8<kE, kM> a, Float8<kE, kM> b) {
  return firstOf(larger(pairOf(a), pairOf(b)));
}
template <int kE, int kM>
__device__ __forceinline__ Float8<kE, kM> lesser(Float8<kE, kM> a, Float8<kE, kM> b) {
  return firstOf(lesser(pairOf(a), pairOf(b)));
}

}  // namespace tutti::device
