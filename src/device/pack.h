// Bytes as registers: a pack is what a thread moves with one access, seen as lanes that operations work on.
#pragma once

#include "device/number.h"
#include "device/simt.h"

namespace tutti::device {

/// `kBytes` of elements T. Operations apply lane by lane.
template <class T, std::size_t kBytes>
struct alignas(kBytes) Pack {
  using Lane = std::conditional_t<kBytes % sizeof(LaneOf<T>) == 0, LaneOf<T>, T>;
  static constexpr unsigned kLanes = kBytes / sizeof(Lane);
  static constexpr unsigned kElements = kBytes / sizeof(T);
  Lane lane[kLanes];
};

/// What this world moves at a time when everything is aligned.
template <class T>
inline constexpr std::size_t kWidePack = simt::kPackBytes > sizeof(T) && !kLongCode<T> ? simt::kPackBytes : sizeof(T);

template <class P, class F>
TUTTI_DEVICE P mapLanes(P a, F f) {
  TUTTI_UNROLL
  for (unsigned i = 0; i < P::kLanes; ++i) a.lane[i] = f(a.lane[i]);
  return a;
}

template <class P, class F>
TUTTI_DEVICE P zipLanes(P a, P b, F f) {
  TUTTI_UNROLL
  for (unsigned i = 0; i < P::kLanes; ++i) a.lane[i] = f(a.lane[i], b.lane[i]);
  return a;
}

}  // namespace tutti::device
