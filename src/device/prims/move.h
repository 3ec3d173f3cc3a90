// The inner loops: take elements from one or two sources, apply the operation, put them into one or two destinations.
#pragma once

#include "device/number/reduce_op.h"

namespace tutti::device {

/// Where one slice comes from and goes to. Sources: `own` is the user's input, `received` a slot, or what came in
/// place. Destinations: `first`, and `second` if there are two. Null: absent. Any of them may be the same range as
/// another, exactly.
template <class T>
struct Slice {
  const T* own;
  const T* received;
  T* first;
  T* second;
  std::uint64_t count;
  bool streamFirst;   ///< `first` should not enter this core's cache
  bool streamSecond;  ///< `second` likewise
};

template <class T>
TUTTI_DEVICE bool alignedTo(const Slice<T>& s, std::size_t bytes) {
  const auto all = reinterpret_cast<std::uintptr_t>(s.own) | reinterpret_cast<std::uintptr_t>(s.received) |
                   reinterpret_cast<std::uintptr_t>(s.first) | reinterpret_cast<std::uintptr_t>(s.second);
  return all % bytes == 0;
}

/// Which sources and destinations a loop has, so that they cost nothing where they are absent.
template <bool kOwn, bool kReceived, bool kSecond, bool kFinal>
struct Shape {
  static constexpr bool own = kOwn;
  static constexpr bool received = kReceived;
  static constexpr bool second = kSecond;
  static constexpr bool final = kFinal;  ///< the result is complete: apply Op::after
};

/// How many packs a GPU thread has in flight of a single source.
inline constexpr int kCopyBatch = 8;
/// … of each of two. Sums of halves are computed in floats, which take registers.
template <class T>
inline constexpr int kSumBatch = sizeof(T) == 2 ? 4 : 6;

/// The first `n` packs (or bare elements) P of the slice.
template <class P, class S, class T, class Op>
TUTTI_DEVICE void combinePacks(simt::Group group, const Op& op, const Slice<T>& slice, std::size_t n) {
  const T* own = slice.own;
  const T* received = slice.received;
  T* first = slice.first;
  T* second = slice.second;
  // A 64-bit division is a call that needs registers, and so does an operation that is chosen at run time; with many
  // packs in flight as well they would be spilled.
  constexpr int kMost = S::own && S::received ? kSumBatch<T> : kCopyBatch;
  constexpr int kFew = Op::kBefore || Op::kAfter ? 2 : kMost;
  constexpr int kInFlight = (S::final && Op::kAfter) || kLongCode<T> ? 1 : kFew;
  simt::forEachBatch<kInFlight>(group, n, [=]<int kN>(std::size_t i, std::size_t stride) {
    P value[kN];
    [[maybe_unused]] P other[kN];
    TUTTI_UNROLL
    for (int u = 0; u < kN; ++u) {
      if constexpr (S::own) value[u] = simt::loadPlain<P>(own, i + u * stride);
      if constexpr (S::received) other[u] = simt::loadPlain<P>(received, i + u * stride);
    }
    if constexpr (S::own && Op::kBefore) beforeAll(op, value);
    if constexpr (S::own && S::received) combineAll(op, value, other);
    TUTTI_UNROLL
    for (int u = 0; u < kN; ++u) {
      if constexpr (!S::own) value[u] = other[u];
      if constexpr (S::final && Op::kAfter) value[u] = op.after(value[u]);
      simt::storePlain(first, i + u * stride, value[u]);
      if constexpr (S::second && simt::kFusedStores) simt::storePlain(second, i + u * stride, value[u]);
    }
  });
}

/// What fits into packs P, if the addresses allow them; the rest stays in `slice`.
template <class P, class S, class T, class Op>
TUTTI_DEVICE void combineWhole(simt::Group group, const Op& op, Slice<T>& slice) {
  if (!alignedTo(slice, sizeof(P))) return;
  const std::size_t packs = slice.count / P::kElements;
  combinePacks<P, S>(group, op, slice, packs);
  const std::size_t done = packs * P::kElements;
  if constexpr (S::own) slice.own += done;
  if constexpr (S::received) slice.received += done;
  if constexpr (S::second) slice.second += done;
  slice.first += done;
  slice.count -= done;
}

/// All elements of a slice: wide packs where the addresses allow it, single elements for the rest.
template <class S, class T, class Op>
TUTTI_DEVICE void combineElements(simt::Group group, const Op& op, Slice<T> slice) {
  using Wide = Pack<T, kWidePack<T>>;
  if constexpr (Wide::kElements > 1) combineWhole<Wide, S>(group, op, slice);
  if (slice.count != 0) combinePacks<T, S>(group, op, slice, slice.count);
}

/// A slice of bytes for two places at once: the elements they stand for are wider, and aligned as such.
template <class S, class T, class Op>
TUTTI_DEVICE void copyTogether(simt::Group group, const Op& op, Slice<T> slice) {
  combineWhole<Pack<T, 16>, S>(group, op, slice);
  combineWhole<Pack<T, 8>, S>(group, op, slice);
  combineWhole<Pack<T, 4>, S>(group, op, slice);
  combineWhole<Pack<T, 2>, S>(group, op, slice);
  combinePacks<T, S>(group, op, slice, slice.count);
}

/// The streaming form: the result is made in a buffer that stays in the cache, and leaves that for its destinations.
template <class S, class T, class Op>
TUTTI_DEVICE void combineThenStream(simt::Group group, const Op& op, const Slice<T>& slice) {
  simt::forEachRun(group, slice.count, simt::kRunBytes / sizeof(T),
                   [&](simt::Group alone, std::size_t begin, std::size_t count) {
                     T made[simt::kRunBytes / sizeof(T)];
                     Slice<T> piece{nullptr, nullptr, made, nullptr, count, false, false};
                     if constexpr (S::own) piece.own = slice.own + begin;
                     if constexpr (S::received) piece.received = slice.received + begin;
                     combineElements<Shape<S::own, S::received, false, S::final>>(alone, op, piece);
                     const std::size_t bytes = count * sizeof(T);
                     simt::copyBytes(alone, slice.first + begin, made, bytes, slice.streamFirst);
                     if constexpr (S::second) {
                       simt::copyBytes(alone, slice.second + begin, made, bytes, slice.streamSecond);
                     }
                   });
}

/// Worlds without fused stores: the second destination is copied from the first while that is in the cache.
template <class S, class T, class Op>
TUTTI_DEVICE void combineThenCopy(simt::Group group, const Op& op, const Slice<T>& slice) {
  simt::forEachRun(group, slice.count, simt::kRunBytes / sizeof(T),
                   [&](simt::Group alone, std::size_t begin, std::size_t count) {
                     Slice<T> piece = slice;
                     if constexpr (S::own) piece.own += begin;
                     if constexpr (S::received) piece.received += begin;
                     piece.first += begin;
                     piece.second = nullptr;
                     piece.count = count;
                     combineElements<Shape<S::own, S::received, false, S::final>>(alone, op, piece);
                     simt::copyBytes(alone, slice.second + begin, piece.first, count * sizeof(T), slice.streamSecond);
                   });
}

/// While stores are delayed on purpose: only copies touch memory that others see.
template <class S, class T, class Op>
TUTTI_DEVICE_RARE void combineInBuffers(simt::Group group, const Op& op, const Slice<T>& slice) {
  simt::forEachRun(group, slice.count, simt::kRunBytes / sizeof(T),
                   [&](simt::Group alone, std::size_t begin, std::size_t count) {
                     T own[S::own ? simt::kRunBytes / sizeof(T) : 1];
                     T received[S::received ? simt::kRunBytes / sizeof(T) : 1];
                     T made[simt::kRunBytes / sizeof(T)];
                     const std::size_t bytes = count * sizeof(T);
                     if constexpr (S::own) simt::copyBytes(alone, own, slice.own + begin, bytes, false);
                     if constexpr (S::received) simt::copyBytes(alone, received, slice.received + begin, bytes, false);
                     const Slice<T> piece{own, received, made, nullptr, count, false, false};
                     combineElements<Shape<S::own, S::received, false, S::final>>(alone, op, piece);
                     simt::copyBytes(alone, slice.first + begin, made, bytes, false);
                     if constexpr (S::second) simt::copyBytes(alone, slice.second + begin, made, bytes, false);
                   });
}

/// A slice that only moves: one source, no operation on it.
template <class S, class T>
TUTTI_DEVICE void copySlice(simt::Group group, const Slice<T>& slice) {
  const T* from = S::own ? slice.own : slice.received;
  if constexpr (S::second) {
    simt::forEachRun(group, slice.count, simt::kRunBytes / sizeof(T),
                     [&](simt::Group alone, std::size_t begin, std::size_t count) {
                       const std::size_t bytes = count * sizeof(T);
                       simt::copyBytes(alone, slice.first + begin, from + begin, bytes, slice.streamFirst);
                       simt::copyBytes(alone, slice.second + begin, from + begin, bytes, slice.streamSecond);
                     });
  } else {
    simt::copyBytes(group, slice.first, from, slice.count * sizeof(T), slice.streamFirst);
  }
}

/// moveSlice() for one operation.
template <class S, class T, class Op>
TUTTI_DEVICE void moveSliceBy(simt::Group group, const Op& op, const Slice<T>& slice) {
  constexpr bool kComputes = (S::own && S::received) || (S::own && Op::kBefore) || (S::final && Op::kAfter);
  if constexpr (simt::kDelayPossible && kComputes) {
    if (simt::storesAreDelayed()) [[unlikely]]
      return combineInBuffers<S>(group, op, slice);
  }
  if constexpr (simt::kFusedStores && !kComputes && S::second && sizeof(T) == 1) {
    copyTogether<S>(group, op, slice);
  } else if constexpr (simt::kFusedStores && (kComputes || S::second)) {
    combineElements<S>(group, op, slice);
  } else if constexpr (!kComputes) {
    copySlice<S>(group, slice);
  } else if (slice.streamFirst) {
    combineThenStream<S>(group, op, slice);
  } else if constexpr (S::second) {
    combineThenCopy<S>(group, op, slice);
  } else {
    combineElements<S>(group, op, slice);
  }
}

/// Moves one slice; every thread of the group calls it and does its share. No barrier inside.
template <class S, class T, class Op>
TUTTI_DEVICE void moveSlice(simt::Group group, const Op& op, const Slice<T>& slice) {
  moveSliceBy<S>(group, op, slice);
}

/// The operation is told apart once per slice where loops want it so. On a GPU only the division is: it would slow
/// down everybody's loop.
template <class S, class T, bool kDivides>
TUTTI_DEVICE void moveSlice(simt::Group group, const RuntimeOp<T, kDivides>& any, const Slice<T>& slice) {
  if constexpr (simt::kHoistsOps) {
    withConcreteOp(any, [&](const auto& op) { moveSliceBy<S>(group, op, slice); });
  } else if constexpr (S::final && kDivides) {
    if (any.op == DevOp::SumPostDiv) return moveSliceBy<S>(group, SumPostDivOp<T>(any.scalar), slice);
    moveSliceBy<S>(group, RuntimeOp<T, false>(any.op, any.scalar), slice);
  } else {
    moveSliceBy<S>(group, RuntimeOp<T, false>(any.op, any.scalar), slice);
  }
}

}  // namespace tutti::device
