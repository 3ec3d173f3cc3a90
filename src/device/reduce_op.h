// The reductions. `before` meets each rank's own input exactly once, `combine` joins two partial results, `after` meets
// the complete result exactly once. All work on packs.
#pragma once

#include "device/pack.h"
#include "device/work.h"

namespace tutti::device {

/// What a work item says of its operation.
template <class T>
TUTTI_DEVICE T scalarOf(const CollWork& work) {
  T value;
  const void* from = work.scalarIsPointer ? reinterpret_cast<const void*>(work.scalar) : &work.scalar;
  __builtin_memcpy(&value, from, sizeof(T));
  return value;
}

/// Operations without a scalar.
struct PlainOp {
  static constexpr bool kBefore = false;
  static constexpr bool kAfter = false;
  template <class P>
  TUTTI_DEVICE P before(P pack) const {
    return pack;
  }
  template <class P>
  TUTTI_DEVICE P after(P pack) const {
    return pack;
  }
};

/// No reduction at all: bytes.
template <class T>
struct CopyOp : PlainOp {
  TUTTI_DEVICE explicit CopyOp(const CollWork&) {}
  CopyOp() = default;
  template <class P>
  TUTTI_DEVICE P combine(P a, P) const {
    return a;
  }
};

template <class T>
struct SumOp : PlainOp {
  TUTTI_DEVICE explicit SumOp(const CollWork&) {}
  template <class P>
  TUTTI_DEVICE P combine(P a, P b) const {
    return zipLanes(a, b, [](auto x, auto y) { return add(x, y); });
  }
};

template <class T>
struct ProdOp : PlainOp {
  TUTTI_DEVICE explicit ProdOp(const CollWork&) {}
  template <class P>
  TUTTI_DEVICE P combine(P a, P b) const {
    return zipLanes(a, b, [](auto x, auto y) { return multiply(x, y); });
  }
};

template <class T>
struct MaxOp : PlainOp {
  TUTTI_DEVICE explicit MaxOp(const CollWork&) {}
  template <class P>
  TUTTI_DEVICE P combine(P a, P b) const {
    return zipLanes(a, b, [](auto x, auto y) { return larger(x, y); });
  }
};

template <class T>
struct MinOp : PlainOp {
  TUTTI_DEVICE explicit MinOp(const CollWork&) {}
  template <class P>
  TUTTI_DEVICE P combine(P a, P b) const {
    return zipLanes(a, b, [](auto x, auto y) { return lesser(x, y); });
  }
};

/// Sum of inputs scaled by this rank's factor.
template <class T>
struct PreMulSumOp : SumOp<T> {
  static constexpr bool kBefore = true;
  T factor;
  TUTTI_DEVICE explicit PreMulSumOp(const CollWork& work) : SumOp<T>(work), factor(scalarOf<T>(work)) {}
  template <class P>
  TUTTI_DEVICE P before(P pack) const {
    const auto wide = broadcast<typename P::Lane>(factor);
    return mapLanes(pack, [wide](auto x) { return multiply(x, wide); });
  }
};

/// Sum modulo 2^n, then one division that truncates; integers only.
template <class T>
struct SumPostDivOp : SumOp<T> {
  static constexpr bool kAfter = true;
  /// Holds the number of ranks also where the element type does not.
  using Narrow = std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>;
  using Divisor = std::conditional_t<(sizeof(T) < sizeof(Narrow)), Narrow, T>;
  Divisor divisor;
  TUTTI_DEVICE explicit SumPostDivOp(const CollWork& work)
      : SumOp<T>(work), divisor(static_cast<Divisor>(work.scalar)) {}
  template <class P>
  TUTTI_DEVICE P after(P pack) const {
    const Divisor by = divisor;
    return mapLanes(pack, [by](T x) { return static_cast<T>(x / by); });
  }
};

}  // namespace tutti::device
