// Arithmetic on elements and on pairs of 16-bit floats on a GPU; the counterpart of number_host.h. Include number.h.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

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

/// What one operation works on within a pack: pairs of 16-bit floats, else the element.
template <class T>
using LaneOf = typename Lane<T>::Type;

template <class L, class T>
__device__ __forceinline__ L broadcast(T value) {
  if constexpr (std::is_same_v<L, T>) {
    return value;
  } else if constexpr (std::is_same_v<T, Half>) {
    return __half2half2(value);
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

__device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ float multiply(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ float lesser(float a, float b) { return fminf(a, b); }
__device__ __forceinline__ double add(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double multiply(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double larger(double a, double b) { return fmax(a, b); }
__device__ __forceinline__ double lesser(double a, double b) { return fmin(a, b); }

// The _rn forms are never merged with a neighbour: every step rounds.
__device__ __forceinline__ Half add(Half a, Half b) { return __hadd_rn(a, b); }
__device__ __forceinline__ Half multiply(Half a, Half b) { return __hmul_rn(a, b); }
__device__ __forceinline__ Half larger(Half a, Half b) { return __hmax(a, b); }
__device__ __forceinline__ Half lesser(Half a, Half b) { return __hmin(a, b); }
__device__ __forceinline__ __half2 add(__half2 a, __half2 b) { return __hadd2_rn(a, b); }
__device__ __forceinline__ __half2 multiply(__half2 a, __half2 b) { return __hmul2_rn(a, b); }
__device__ __forceinline__ __half2 larger(__half2 a, __half2 b) { return __hmax2(a, b); }
__device__ __forceinline__ __half2 lesser(__half2 a, __half2 b) { return __hmin2(a, b); }

__device__ __forceinline__ BFloat16 add(BFloat16 a, BFloat16 b) { return __hadd_rn(a, b); }
__device__ __forceinline__ BFloat16 multiply(BFloat16 a, BFloat16 b) { return __hmul_rn(a, b); }
__device__ __forceinline__ BFloat16 larger(BFloat16 a, BFloat16 b) { return __hmax(a, b); }
__device__ __forceinline__ BFloat16 lesser(BFloat16 a, BFloat16 b) { return __hmin(a, b); }
__device__ __forceinline__ __nv_bfloat162 add(__nv_bfloat162 a, __nv_bfloat162 b) { return __hadd2_rn(a, b); }
__device__ __forceinline__ __nv_bfloat162 multiply(__nv_bfloat162 a, __nv_bfloat162 b) { return __hmul2_rn(a, b); }
__device__ __forceinline__ __nv_bfloat162 larger(__nv_bfloat162 a, __nv_bfloat162 b) { return __hmax2(a, b); }
__device__ __forceinline__ __nv_bfloat162 lesser(__nv_bfloat162 a, __nv_bfloat162 b) { return __hmin2(a, b); }

}  // namespace tutti::device
