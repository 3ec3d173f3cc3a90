// Inner loops of trees: own data and those of several peers in one pass, to several destinations.
#pragma once

#include "device/prims/prims_common.h"

namespace tutti::device {

/// Like Slice, with up to FanOf::kRecvs sources in slots and FanOf::kSends destinations in slots.
template <class T, class FanOf>
struct FanSlice {
  const T* own;
  const T* received[FanOf::kRecvs];
  T* out;
  T* sent[FanOf::kSends];
  int nReceived;
  int nSent;
  std::uint64_t count;
  bool streamOut;
  bool streamSent;
};

/// Packs 0..n-1 of the slice by all threads of a group.
template <class P, class V, class T, class Op, class FanOf>
TUTTI_DEVICE void fanPacks(simt::Group group, const Op& op, const FanSlice<T, FanOf>& s, std::size_t n) {
  simt::forEachBatch<1>(group, n, [&]<int kN>(std::size_t i, std::size_t) {
    P value{};
    if constexpr (V::own) value = simt::loadData<P>(s.own, i);
    if constexpr (V::own && Op::kBefore) value = op.before(value);
    if constexpr (V::recv) {
      TUTTI_UNROLL
      for (int k = 0; k < FanOf::kRecvs; ++k) {
        if (k >= s.nReceived) continue;
        const P other = simt::loadData<P>(s.received[k], i);
        if constexpr (V::own) value = op.combine(value, other);
        if constexpr (!V::own) value = other;
      }
    }
    if constexpr (V::final && Op::kAfter) value = op.after(value);
    if constexpr (V::send) {
      TUTTI_UNROLL
      for (int k = 0; k < FanOf::kSends; ++k) {
        if (k < s.nSent) simt::storeData(s.sent[k], i, value);
      }
    }
    if constexpr (V::out) simt::storeData(s.out, i, value);
  });
}

template <class V, class T, class Op, class FanOf>
TUTTI_DEVICE void fanTogether(simt::Group group, const Op& op, FanSlice<T, FanOf> s) {
  using Wide = Pack<T, (Op::kAfter && sizeof(T) == 1 ? 8 : 16)>;  // 16 divisions at a time would be spilled
  using Narrow = Pack<T, sizeof(T)>;
  const auto user = (V::own ? reinterpret_cast<std::uintptr_t>(s.own) : 0) |
                    (V::out ? reinterpret_cast<std::uintptr_t>(s.out) : 0);  // slots are aligned
  if (user % sizeof(Wide) == 0) {
    const std::size_t packs = s.count / Wide::kElements;
    fanPacks<Wide, V>(group, op, s, packs);
    const std::size_t done = packs * Wide::kElements;
    if (done == s.count) return;
    s.own += V::own ? done : 0;
    s.out += V::out ? done : 0;
    for (auto& received : s.received) received += received == nullptr ? 0 : done;
    for (auto& sent : s.sent) sent += sent == nullptr ? 0 : done;
    s.count -= done;
  }
  fanPacks<Narrow, V>(group, op, s, s.count);
}

/// What one thread makes of `count` elements from `begin` on, in `made` if they have to be computed.
template <class V, class T, class Op, class FanOf>
TUTTI_DEVICE const T* fanPiece(const Op& op, const FanSlice<T, FanOf>& s, std::uint64_t begin, std::uint64_t count,
                               T* made) {
  constexpr simt::Group kAlone{0, 1};
  if constexpr (!V::own) {
    return s.received[0] + begin;
  } else {
    const T* own = s.own + begin;
    if (s.nReceived == 0) {
      if (!Op::kBefore) return own;
      moveSlice<Shape<true, false, false, false>>(kAlone, op,
                                                  Slice<T>{own, nullptr, made, nullptr, count, false, false});
      return made;
    }
    moveSlice<Shape<true, true, false, false>>(
        kAlone, op, Slice<T>{own, s.received[0] + begin, made, nullptr, count, false, false});
    for (int k = 1; k < s.nReceived; ++k) combineInto(op, made, s.received[k] + begin, count);
    if constexpr (V::final && Op::kAfter) {
      moveSlice<Shape<false, true, false, true>>(kAlone, op,
                                                 Slice<T>{nullptr, made, made, nullptr, count, false, false});
    }
    return made;
  }
}

/// Moves one slice; every thread of the group calls it and does its share. No barrier inside.
template <class V, class T, class Op, class FanOf>
TUTTI_DEVICE void moveFan(simt::Group group, const Op& op, const FanSlice<T, FanOf>& s) {
  if constexpr (simt::kFusedStores) {
    fanTogether<V>(group, op, s);
  } else {
    if (group.size > 1) return fanTogether<V>(group, op, s);
    simt::forEachRun(group, s.count, simt::kRunBytes / sizeof(T),
                     [&](simt::Group alone, std::size_t begin, std::size_t count) {
                       T made[simt::kRunBytes / sizeof(T)];
                       const T* result = fanPiece<V>(op, s, begin, count, made);
                       const std::size_t bytes = count * sizeof(T);
                       for (int k = 0; V::send && k < s.nSent; ++k) {
                         simt::copyBytes(alone, s.sent[k] + begin, result, bytes, s.streamSent);
                       }
                       if (V::out) simt::copyBytes(alone, s.out + begin, result, bytes, s.streamOut);
                     });
  }
}

}  // namespace tutti::device
