// The reductions. `before` meets each rank's own input exactly once, `combine` joins two partial results, `after` meets
// the complete result exactly once. All work on packs.
#pragma once

#include "device/number/pack.h"
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
  SumOp() = default;
  template <class P>
  TUTTI_DEVICE P combine(P a, P b) const {
    return zipLanes(a, b, [](auto x, auto y) { return add(x, y); });
  }
};

template <class T>
struct ProdOp : PlainOp {
  template <class P>
  TUTTI_DEVICE P combine(P a, P b) const {
    return zipLanes(a, b, [](auto x, auto y) { return multiply(x, y); });
  }
};

template <class T>
struct MaxOp : PlainOp {
  template <class P>
  TUTTI_DEVICE P combine(P a, P b) const {
    return zipLanes(a, b, [](auto x, auto y) { return larger(x, y); });
  }
};

template <class T>
struct MinOp : PlainOp {
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
  TUTTI_DEVICE explicit PreMulSumOp(T by) : factor(by) {}
  template <class P>
  TUTTI_DEVICE P before(P pack) const {
    const auto wide = broadcast<LaneIn<P>>(factor);
    return mapLanes(pack, [wide](auto x) { return multiply(x, wide); });
  }
};

/// A divisor that holds the number of ranks also where the element type does not.
template <class T>
struct PostDivisor {
  using Narrow = std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>;
  using Type = std::conditional_t<std::is_integral_v<T> && (sizeof(T) < sizeof(Narrow)), Narrow, T>;
};

/// Sum modulo 2^n, then one division that truncates; integers only.
template <class T>
struct SumPostDivOp : SumOp<T> {
  static constexpr bool kAfter = true;
  using Divisor = typename PostDivisor<T>::Type;
  Divisor divisor;
  TUTTI_DEVICE explicit SumPostDivOp(Divisor by) : divisor(by) {}
  template <class P>
  TUTTI_DEVICE P after(P pack) const {
    const Divisor by = divisor;
    return mapLanes(pack, [by](auto x) { return divide(x, by); });
  }
};

/// The operation that CollWork::op names, chosen at run time; all threads of a kernel take the same branches. Loops
/// that cannot afford the branch go through withConcreteOp(). kDivides: SumPostDiv is among the choices.
template <class T, bool kDivides>
struct RuntimeOp {
  static constexpr bool kBefore = true;
  static constexpr bool kAfter = kDivides;
  using Scalar = typename PostDivisor<T>::Type;
  DevOp op;
  Scalar scalar{};  ///< the factor of PreMulSum or the divisor of SumPostDiv

  TUTTI_DEVICE explicit RuntimeOp(const CollWork& work) : op(work.op) {
    if (op == DevOp::PreMulSum) scalar = static_cast<Scalar>(scalarOf<T>(work));
    if constexpr (kDivides) {
      if (op == DevOp::SumPostDiv) scalar = static_cast<Scalar>(work.scalar);
    }
  }
  TUTTI_DEVICE RuntimeOp(DevOp which, Scalar with) : op(which), scalar(with) {}

  template <class P>
  TUTTI_DEVICE P before(P pack) const {
    return op == DevOp::PreMulSum ? PreMulSumOp<T>(static_cast<T>(scalar)).before(pack) : pack;
  }
  template <class P>
  TUTTI_DEVICE P combine(P a, P b) const {
    switch (op) {
      case DevOp::Prod:
        return ProdOp<T>().combine(a, b);
      case DevOp::Max:
        return MaxOp<T>().combine(a, b);
      case DevOp::Min:
        return MinOp<T>().combine(a, b);
      case DevOp::Sum:
      case DevOp::PreMulSum:
      case DevOp::SumPostDiv:
        break;
    }
    return SumOp<T>().combine(a, b);
  }
  template <class P>
  TUTTI_DEVICE P after(P pack) const {
    if constexpr (kDivides) {
      if (op == DevOp::SumPostDiv) return SumPostDivOp<T>(scalar).after(pack);
    }
    return pack;
  }
};

template <class T>
using AnyOp = RuntimeOp<T, std::is_integral_v<T>>;

/// `before` on several packs.
template <class Op, class P, int kN>
TUTTI_DEVICE void beforeAll(const Op& op, P (&packs)[kN]) {
  TUTTI_UNROLL
  for (int u = 0; u < kN; ++u) packs[u] = op.before(packs[u]);
}
template <class T, bool kDivides, class P, int kN>
TUTTI_DEVICE void beforeAll(const RuntimeOp<T, kDivides>& any, P (&packs)[kN]) {
  if (any.op == DevOp::PreMulSum) beforeAll(PreMulSumOp<T>(static_cast<T>(any.scalar)), packs);
}

/// Whether inputs meet `before`: what is sent first is then not what lies in the input.
template <class Op>
TUTTI_DEVICE bool changesInput(const Op&) {
  return Op::kBefore;
}
template <class T, bool kDivides>
TUTTI_DEVICE bool changesInput(const RuntimeOp<T, kDivides>& any) {
  return any.op == DevOp::PreMulSum;
}

/// `combine` on several pairs of packs, into the first of each; a RuntimeOp branches once for all.
template <class Op, class P, int kN>
TUTTI_DEVICE void combineAll(const Op& op, P (&into)[kN], const P (&other)[kN]) {
  TUTTI_UNROLL
  for (int u = 0; u < kN; ++u) into[u] = op.combine(into[u], other[u]);
}
template <class T, bool kDivides, class P, int kN>
TUTTI_DEVICE void combineAll(const RuntimeOp<T, kDivides>& any, P (&into)[kN], const P (&other)[kN]) {
  switch (any.op) {
    case DevOp::Prod:
      return combineAll(ProdOp<T>(), into, other);
    case DevOp::Max:
      return combineAll(MaxOp<T>(), into, other);
    case DevOp::Min:
      return combineAll(MinOp<T>(), into, other);
    case DevOp::Sum:
    case DevOp::PreMulSum:
    case DevOp::SumPostDiv:
      break;
  }
  combineAll(SumOp<T>(), into, other);
}

/// Calls f with the operation itself: an op of the compile-time kind as it is.
template <class Op, class F>
TUTTI_DEVICE void withConcreteOp(const Op& op, F f) {
  f(op);
}

/// … and what a RuntimeOp stands for.
template <class T, bool kDivides, class F>
TUTTI_DEVICE void withConcreteOp(const RuntimeOp<T, kDivides>& any, F f) {
  switch (any.op) {
    case DevOp::Prod:
      return f(ProdOp<T>());
    case DevOp::Max:
      return f(MaxOp<T>());
    case DevOp::Min:
      return f(MinOp<T>());
    case DevOp::PreMulSum:
      return f(PreMulSumOp<T>(static_cast<T>(any.scalar)));
    case DevOp::SumPostDiv:
      if constexpr (kDivides) return f(SumPostDivOp<T>(any.scalar));
      break;
    case DevOp::Sum:
      break;
  }
  f(SumOp<T>());
}

}  // namespace tutti::device
