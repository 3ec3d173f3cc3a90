// Bytes as registers: a pack is what a thread moves with one access, seen as lanes that operations work on.
#pragma once

#include "device/number/number.h"
#include "device/simt/simt.h"

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

// What is no pack is an element: loops that move elements one by one use them bare. (g++ 12 makes no vectors of packs
// of a single byte.)
template <class P>
struct PackTraits {
  using Lane = P;
};
template <class T, std::size_t kBytes>
struct PackTraits<Pack<T, kBytes>> {
  using Lane = typename Pack<T, kBytes>::Lane;
};
template <class P>
using LaneIn = typename PackTraits<P>::Lane;

template <class E, class F>
TUTTI_DEVICE E mapLanes(E a, F f) {
  return f(a);
}
template <class T, std::size_t kBytes, class F>
TUTTI_DEVICE Pack<T, kBytes> mapLanes(Pack<T, kBytes> a, F f) {
  TUTTI_UNROLL
  for (unsigned i = 0; i < a.kLanes; ++i) a.lane[i] = f(a.lane[i]);
  return a;
}

template <class E, class F>
TUTTI_DEVICE E zipLanes(E a, E b, F f) {
  return f(a, b);
}
template <class T, std::size_t kBytes, class F>
TUTTI_DEVICE Pack<T, kBytes> zipLanes(Pack<T, kBytes> a, Pack<T, kBytes> b, F f) {
  TUTTI_UNROLL
  for (unsigned i = 0; i < a.kLanes; ++i) a.lane[i] = f(a.lane[i], b.lane[i]);
  return a;
}

}  // namespace tutti::device
