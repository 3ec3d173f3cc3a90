// The inner loop of direct algorithms: any number of sources, combined in their order in one pass, any number of
// destinations. A GPU keeps two sources of several packs in flight and stores from registers; a CPU works in pieces
// that stay in the first-level cache, four sources per loop.
#pragma once

#include "device/partition.h"
#include "device/prims/move.h"

namespace tutti::device {

/// Sources 0..nSources-1, in the order in which they are combined: `own` at place `ownAt`, the others lie in slots.
/// Destinations: `out` (null: none), and slots 0..nTo-1 but `skipTo`.
template <class T>
struct FanIn {
  const T* own = nullptr;
  const std::byte* const* from = nullptr;  ///< slot of place p: from[p + fromShift]; that of ownAt is not looked at
  int fromShift = 0;
  std::uint64_t fromOffset = 0;  ///< where in each slot, in elements
  int nSources = 1;
  int ownAt = 0;
  T* out = nullptr;  ///< null: none
  std::byte* const* to = nullptr;
  std::uint64_t toOffset = 0;
  int nTo = 0;
  int skipTo = -1;
  std::uint64_t count = 0;
  bool streams = false;    ///< `out` should not enter this core's cache
  bool streamsTo = false;  ///< the slots likewise

  TUTTI_DEVICE const T* source(int place) const {
    return place == ownAt ? own : reinterpret_cast<const T*>(from[place + fromShift]) + fromOffset;
  }
  TUTTI_DEVICE T* target(int place) const { return reinterpret_cast<T*>(to[place]) + toOffset; }
  /// Destinations in the order in which they are served: everybody starts with another one.
  TUTTI_DEVICE int turn(int distance) const {
    const int place = skipTo + 1 + distance;
    return place < nTo ? place : place - nTo;
  }
  TUTTI_DEVICE int turns() const { return skipTo < 0 ? nTo : nTo - 1; }
};

/// Packs i, i+stride, … of `from`.
template <class P, int kN, class T>
TUTTI_DEVICE void loadSource(P (&into)[kN], const T* from, std::size_t i, std::size_t stride) {
  TUTTI_UNROLL
  for (int u = 0; u < kN; ++u) into[u] = simt::loadData<P>(from, i + u * stride);
}

/// sum = sum + more, where `own` says that `more` has not met Op::before yet.
template <class P, int kN, class Op>
TUTTI_DEVICE void fold(P (&sum)[kN], P (&more)[kN], const Op& op, bool own) {
  TUTTI_UNROLL
  for (int u = 0; u < kN; ++u) {
    if (Op::kBefore && own) more[u] = op.before(more[u]);
    sum[u] = op.combine(sum[u], more[u]);
  }
}

/// Packs of all sources and destinations that begin `skip` elements further on.
template <class P, bool kFinal, class T, class Op>
TUTTI_DEVICE void fanInPacks(simt::Group group, const Op& op, const FanIn<T>& f, std::uint64_t skip, std::size_t n) {
  // More would be spilled.
  constexpr bool kWords = sizeof(T) == 2 || sizeof(T) == 4;
  constexpr int kMost = kWords ? 4 : sizeof(T) == 8 ? 1 : 2;
  constexpr int kInFlight = Op::kBefore || Op::kAfter ? (kWords ? 2 : 1) : kMost;
  simt::forEachBatch<kInFlight>(group, n, [&]<int kN>(std::size_t i, std::size_t stride) {
    P sum[kN], first[kN], second[kN];
    loadSource(sum, f.source(0) + skip, i, stride);
    int place = 1;
    if (Op::kBefore && f.ownAt == 0) {
      TUTTI_UNROLL
      for (int u = 0; u < kN; ++u) sum[u] = op.before(sum[u]);
    }
    for (; place + 1 < f.nSources; place += 2) {
      loadSource(first, f.source(place) + skip, i, stride);
      loadSource(second, f.source(place + 1) + skip, i, stride);
      fold(sum, first, op, place == f.ownAt);
      fold(sum, second, op, place + 1 == f.ownAt);
    }
    if (place < f.nSources) {
      loadSource(first, f.source(place) + skip, i, stride);
      fold(sum, first, op, place == f.ownAt);
    }
    TUTTI_UNROLL
    for (int u = 0; u < kN; ++u) {
      if constexpr (kFinal && Op::kAfter) sum[u] = op.after(sum[u]);
      if (f.out != nullptr) simt::storeData(f.out + skip, i + u * stride, sum[u]);
    }
    for (int distance = 0; distance < f.turns(); ++distance) {
      T* const to = f.target(f.turn(distance)) + skip;
      TUTTI_UNROLL
      for (int u = 0; u < kN; ++u) simt::storeData(to, i + u * stride, sum[u]);
    }
  });
}

/// A GPU's way: wide packs where the addresses allow it, single elements for the rest.
template <bool kFinal, class T, class Op>
TUTTI_DEVICE void fanInThreads(simt::Group group, const Op& op, const FanIn<T>& f) {
  using Wide = Pack<T, kWidePack<T>>;
  using Narrow = Pack<T, sizeof(T)>;
  std::uint64_t done = 0;
  const auto addresses = reinterpret_cast<std::uintptr_t>(f.own) | reinterpret_cast<std::uintptr_t>(f.out) |
                         (f.fromOffset | f.toOffset) * sizeof(T);
  if (addresses % sizeof(Wide) == 0) {
    const std::size_t packs = f.count / Wide::kElements;
    fanInPacks<Wide, kFinal>(group, op, f, 0, packs);
    done = packs * Wide::kElements;
  }
  fanInPacks<Narrow, kFinal>(group, op, f, done, f.count - done);
}

/// to = a + b; `to` may be a.
template <class T, class Op>
TUTTI_DEVICE void combineTwo(simt::Group alone, const Op& op, T* to, const T* const (&from)[4], std::size_t n) {
  using P = Pack<T, sizeof(T)>;
  const T* a = from[0];
  const T* b = from[1];
  simt::forEachPack(alone, n, [=](std::size_t i) {
    simt::storePlain(to, i, op.combine(simt::loadPlain<P>(a, i), simt::loadPlain<P>(b, i)));
  });
}

/// to = ((a + b) + c) + d; `to` may be a.
template <class T, class Op>
TUTTI_DEVICE void combineFour(simt::Group alone, const Op& op, T* to, const T* const (&from)[4], std::size_t n) {
  using P = Pack<T, sizeof(T)>;
  const T* a = from[0];
  const T* b = from[1];
  const T* c = from[2];
  const T* d = from[3];
  simt::forEachPack(alone, n, [=](std::size_t i) {
    P sum = op.combine(simt::loadPlain<P>(a, i), simt::loadPlain<P>(b, i));
    sum = op.combine(sum, simt::loadPlain<P>(c, i));
    simt::storePlain(to, i, op.combine(sum, simt::loadPlain<P>(d, i)));
  });
}

/// Elements of one piece of a CPU.
template <class T>
inline constexpr std::size_t kFanInRun = simt::kRunBytes / sizeof(T);

/// sum = all sources, elements begin..begin+n-1 of them. `source(place)` gives addresses.
template <class T, class Op, class Source>
TUTTI_DEVICE void foldRun(simt::Group alone, const Op& op, T* sum, int nSources, std::size_t n, Source source) {
  if (nSources == 1) return simt::copyBytes(alone, sum, source(0), n * sizeof(T), false);
  for (int place = 0; place < nSources;) {
    const T* from[4] = {place == 0 ? source(0) : sum, nullptr, nullptr, nullptr};
    if (place == 0) place = 1;
    const int most = nSources - place >= 3 ? 3 : 1;
    for (int k = 1; k <= most; ++k) from[k] = source(place++);
    if (most == 3) combineFour(alone, op, sum, from, n);
    if (most == 1) combineTwo(alone, op, sum, from, n);
  }
}

/// While stores are delayed on purpose: sources and sums pass through buffers.
template <class T, class Op>
TUTTI_DEVICE_RARE void foldDelayedRun(simt::Group alone, const Op& op, T* sum, const FanIn<T>& f, Part run) {
  T buffer[kFanInRun<T>];
  for (int place = 0; place < f.nSources; ++place) {
    T* const into = place == 0 ? sum : buffer;
    simt::copyBytes(alone, into, f.source(place) + run.begin, run.count * sizeof(T), false);
    if (Op::kBefore && place == f.ownAt) {
      combineElements<Shape<true, false, false, false>>(
          alone, op, Slice<T>{into, nullptr, into, nullptr, run.count, false, false});
    }
    const T* const from[4] = {sum, buffer, nullptr, nullptr};
    if (place > 0) combineTwo(alone, op, sum, from, run.count);
  }
}

/// The sum of one piece of a CPU: into `sum`.
template <bool kFinal, class T, class Op>
TUTTI_DEVICE void sumRun(simt::Group alone, const Op& op, T* sum, const FanIn<T>& f, Part run) {
  if (simt::kDelayPossible && simt::storesAreDelayed()) {
    foldDelayedRun(alone, op, sum, f, run);
  } else {
    [[maybe_unused]] T scaled[Op::kBefore ? kFanInRun<T> : 1];
    if constexpr (Op::kBefore) {
      const Slice<T> own{f.own + run.begin, nullptr, scaled, nullptr, run.count, false, false};
      combineElements<Shape<true, false, false, false>>(alone, op, own);
    }
    foldRun(alone, op, sum, f.nSources, run.count,
            [&](int place) { return Op::kBefore && place == f.ownAt ? scaled : f.source(place) + run.begin; });
  }
  if constexpr (kFinal && Op::kAfter) {
    combineElements<Shape<false, true, false, true>>(alone, op,
                                                     Slice<T>{nullptr, sum, sum, nullptr, run.count, false, false});
  }
}

/// One piece of a CPU. The sum is made in a slot that enters the cache, if there is one (the others are copied from
/// it), else in a buffer: `out` may be `own`, which is not to be overwritten before it was read.
template <bool kFinal, class T, class Op>
TUTTI_DEVICE void fanInRun(simt::Group alone, const Op& op, const FanIn<T>& f, Part run) {
  alignas(64) T made[kFanInRun<T>];
  const bool copies = f.nSources == 1 && !Op::kBefore && !(kFinal && Op::kAfter);
  const bool inSlot = f.turns() > 0 && !copies && !f.streamsTo && !simt::storesAreDelayed();
  const T* result = f.own + run.begin;
  if (!copies) {
    T* const sum = inSlot ? f.target(f.turn(0)) + run.begin : made;
    sumRun<kFinal>(alone, op, sum, f, run);
    result = sum;
  }
  const std::size_t bytes = run.count * sizeof(T);
  for (int distance = inSlot ? 1 : 0; distance < f.turns(); ++distance) {
    simt::copyBytes(alone, f.target(f.turn(distance)) + run.begin, result, bytes, f.streamsTo);
  }
  if (f.out != nullptr) simt::copyBytes(alone, f.out + run.begin, result, bytes, f.streams);
}

/// fanIn() for one operation.
template <bool kFinal, class T, class Op>
TUTTI_DEVICE void fanInBy(simt::Group group, const Op& op, const FanIn<T>& f) {
  if constexpr (simt::kFusedStores) {
    fanInThreads<kFinal>(group, op, f);
  } else {
    simt::forEachRun(group, f.count, kFanInRun<T>, [&](simt::Group alone, std::size_t begin, std::size_t count) {
      fanInRun<kFinal>(alone, op, f, Part{begin, count});
    });
  }
}

/// Combines and delivers; every thread of the group calls it and does its share. No barrier inside. kFinal: the result
/// is complete, Op::after is applied.
template <bool kFinal, class T, class Op>
TUTTI_DEVICE void fanIn(simt::Group group, const Op& op, const FanIn<T>& f) {
  fanInBy<kFinal>(group, op, f);
}

/// The operation is told apart where loops want it so, as in moveSlice().
template <bool kFinal, class T, bool kDivides>
TUTTI_DEVICE void fanIn(simt::Group group, const RuntimeOp<T, kDivides>& any, const FanIn<T>& f) {
  if constexpr (simt::kHoistsOps) {
    withConcreteOp(any, [&](const auto& op) { fanInBy<kFinal>(group, op, f); });
  } else if constexpr (kFinal && kDivides) {
    if (any.op == DevOp::SumPostDiv) return fanInBy<kFinal>(group, SumPostDivOp<T>(any.scalar), f);
    fanInBy<kFinal>(group, RuntimeOp<T, false>(any.op, any.scalar), f);
  } else {
    fanInBy<kFinal>(group, RuntimeOp<T, false>(any.op, any.scalar), f);
  }
}

}  // namespace tutti::device
