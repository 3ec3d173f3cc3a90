// The arithmetic of the switch: element by element over what the nodes have sent, in the order of the nodes.
//
// Integers wrap. Floats of 8 and 16 bits are added up in binary32 and rounded once, which is better than kernels that
// round after every step. Min and max: a number wins over a NaN, and of two zeros the positive one is larger. All NaNs
// become one, so that a result does not depend on who computes it.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "nccl.h"
#include "numbers.h"

namespace switch_collnet {

/// What a type is computed in.
template <class T>
struct Accumulator {
  using Type = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};
template <>
struct Accumulator<float> {
  using Type = float;
  static float load(float value) { return value; }
  static float store(float value) { return value == value ? value : std::bit_cast<float>(0x7fffffffu); }
};
template <>
struct Accumulator<double> {
  using Type = double;
  static double load(double value) { return value; }
  static double store(double value) {
    return value == value ? value : std::bit_cast<double>(std::uint64_t{0x7fffffffffffffff});
  }
};
template <int kE, int kM, bool kInfinity, bool kSaturates>
struct Accumulator<SmallFloat<kE, kM, kInfinity, kSaturates>> {
  using Small = SmallFloat<kE, kM, kInfinity, kSaturates>;
  using Type = float;
  static float load(Small value) { return toFloat(value); }
  static Small store(float value) { return fromFloat<Small>(value); }
};

/// Integers are added and multiplied as unsigned ones of 64 bits, whose overflow is defined; the low bits are right.
template <class A>
A sum(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class A>
A product(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}
template <class A>
A larger(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) {
    if (a != a || b != b) return a != a ? b : a;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
}
template <class A>
A lesser(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) {
    if (a != a || b != b) return a != a ? b : a;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return b < a ? b : a;
}

/// Data of nodes need not be aligned.
template <class T>
T elementAt(const char* data, std::size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

template <class T, class Combine>
void reduceWith(Combine combine, const std::vector<const char*>& nodes, std::size_t count, char* result) {
  using A = Accumulator<T>;
  for (std::size_t i = 0; i < count; ++i) {
    typename A::Type total = A::load(elementAt<T>(nodes[0], i));
    for (std::size_t n = 1; n < nodes.size(); ++n) total = combine(total, A::load(elementAt<T>(nodes[n], i)));
    const T stored = A::store(total);
    std::memcpy(result + i * sizeof(T), &stored, sizeof(T));
  }
}

template <class T>
bool reduceType(ncclRedOp_t op, const std::vector<const char*>& nodes, std::size_t bytes, char* result) {
  using A = typename Accumulator<T>::Type;
  const std::size_t count = bytes / sizeof(T);
  switch (op) {
    case ncclSum:
      reduceWith<T>(sum<A>, nodes, count, result);
      return true;
    case ncclProd:
      reduceWith<T>(product<A>, nodes, count, result);
      return true;
    case ncclMin:
      reduceWith<T>(lesser<A>, nodes, count, result);
      return true;
    case ncclMax:
      reduceWith<T>(larger<A>, nodes, count, result);
      return true;
    default:
      return false;
  }
}

/// Reduces `bytes` bytes of each of the nodes into `result`. False: there is no such type or operation.
inline bool reduce(int type, int op, const std::vector<const char*>& nodes, std::size_t bytes, char* result) {
  const auto how = static_cast<ncclRedOp_t>(op);
  switch (type) {
    case ncclInt8:
      return reduceType<std::int8_t>(how, nodes, bytes, result);
    case ncclUint8:
      return reduceType<std::uint8_t>(how, nodes, bytes, result);
    case ncclInt32:
      return reduceType<std::int32_t>(how, nodes, bytes, result);
    case ncclUint32:
      return reduceType<std::uint32_t>(how, nodes, bytes, result);
    case ncclInt64:
      return reduceType<std::int64_t>(how, nodes, bytes, result);
    case ncclUint64:
      return reduceType<std::uint64_t>(how, nodes, bytes, result);
    case ncclFloat16:
      return reduceType<Half>(how, nodes, bytes, result);
    case ncclBfloat16:
      return reduceType<BFloat16>(how, nodes, bytes, result);
    case ncclFloat32:
      return reduceType<float>(how, nodes, bytes, result);
    case ncclFloat64:
      return reduceType<double>(how, nodes, bytes, result);
    case ncclFloat8e4m3:
      return reduceType<Float8E4M3>(how, nodes, bytes, result);
    case ncclFloat8e5m2:
      return reduceType<Float8E5M2>(how, nodes, bytes, result);
    default:
      return false;
  }
}

}  // namespace switch_collnet
