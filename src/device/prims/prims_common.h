// What the primitives of all protocols share: crews, verbs, the connections they use, elements in cells.
#pragma once

#include "device/prims/move.h"
#include "device/simt/simt.h"
#include "device/work.h"

namespace tutti::device {

/// How far a crew that receives messages into shared slots has come in asking for them. One thread's.
struct RecvRequests {
  std::uint32_t work;   ///< of the launch, whose message is being asked for …
  std::uint32_t begun;  ///< … and has been looked at
  std::uint64_t left;   ///< bytes of it that have not been asked for
  std::uint32_t slots;  ///< numbers of slots given out
  std::uint32_t knows;  ///< `slots` is valid
};

/// What the threads of a group share. `aborted` must be zero when the group starts.
struct GroupShared {
  std::uint32_t aborted;
  RecvRequests requests;
};

/// Who works together.
struct Crew {
  simt::Thread thread;
  simt::Group group;
  unsigned barrier;  ///< named barrier of this group
  GroupShared* shared;
  const std::uint32_t* abortWord;
  bool registered = false;  ///< KernelArgs::registered of the work that it is at; asked only where kernels offer
};

/// Sources and destinations of a verb, and whether its result is complete.
template <bool kOwn, bool kRecv, bool kSend, bool kOut, bool kFinal>
struct Verb {
  static constexpr bool own = kOwn;
  static constexpr bool recv = kRecv;
  static constexpr bool send = kSend;
  static constexpr bool out = kOut;
  static constexpr bool final = kFinal;
  static constexpr bool offers = kSend;  ///< what lies ready may be offered instead of copied into the slot
};

/// in -> peer, through slots also where it could be offered.
struct FillingSend : Verb<true, false, true, false, false> {
  static constexpr bool offers = false;
};

/// How many connections a crew may have on each side. Trees have up to kMaxTreeChildren, everybody else one.
template <int kMaxRecvs, int kMaxSends>
struct Fan {
  static constexpr bool kShares = false;  ///< connections may share slots (SendShared, RecvShared)
  static constexpr int kRecvs = kMaxRecvs;
  static constexpr int kSends = kMaxSends;
};

/// A crew's connections: the present ones first, then null. With more than one incoming connection verbs combine own
/// data first, then the peers' in this order.
template <class FanOf>
struct ConnPeers {
  const RecvConn* recv[FanOf::kRecvs];
  const SendConn* send[FanOf::kSends];
};

/// An operation that has met all inputs: it only combines.
template <class Op>
struct CombineOnly {
  static constexpr bool kBefore = false;
  static constexpr bool kAfter = false;
  const Op& op;
  template <class P>
  TUTTI_DEVICE P before(P pack) const {
    return pack;
  }
  template <class P>
  TUTTI_DEVICE P combine(P a, P b) const {
    return op.combine(a, b);
  }
  template <class P>
  TUTTI_DEVICE P after(P pack) const {
    return pack;
  }
};

/// into = into + more, for a lone thread; neither is visible to others.
template <class T, class Op>
TUTTI_DEVICE void combineInto(const Op& op, T* into, const T* more, std::uint64_t n) {
  withConcreteOp(op, [&](const auto& concrete) {
    using Concrete = std::remove_cvref_t<decltype(concrete)>;
    moveSliceBy<Shape<true, true, false, false>>(simt::Group{0, 1}, CombineOnly<Concrete>{concrete},
                                                 Slice<T>{into, more, into, nullptr, n, false, false});
  });
}

/// The same bits as another type.
template <class To, class From>
TUTTI_DEVICE To fromBits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

/// Calls f(w, shift, i) for the first `n` elements of a cell: element `i` begins at bit `shift` of its 8-byte word `w`.
/// Without a loop, which the threads of a warp would leave one by one: they would have to be brought together again.
template <class Cell, class T, class F>
TUTTI_DEVICE void forElements(unsigned n, const F& f) {
  TUTTI_UNROLL
  for (unsigned w = 0; w < sizeof(Cell) / 8; ++w) {
    constexpr unsigned kPerWord = 8 / sizeof(T);
    if constexpr (kPerWord == 8) {  // unrolled, they would be spilled
      TUTTI_NO_UNROLL
      for (unsigned e = 0; e < kPerWord && w * kPerWord + e < n; ++e) f(w, 8 * sizeof(T) * e, w * kPerWord + e);
    } else {
      TUTTI_UNROLL
      for (unsigned e = 0; e < kPerWord; ++e) {
        if (w * kPerWord + e < n) f(w, 8 * sizeof(T) * e, w * kPerWord + e);
      }
    }
  }
}

/// The first `n` elements of a cell, one by one: for ends and for addresses that are aligned to elements only. The
/// rest is zero. Shifts instead of an array: registers have no addresses.
template <class Cell, class T>
TUTTI_DEVICE Cell loadElements(const T* from, unsigned n) {
  std::uint64_t word[sizeof(Cell) / 8] = {};
  forElements<Cell, T>(n, [&](unsigned w, std::size_t shift, unsigned i) {
    const auto bits = fromBits<simt::UnsignedOf<sizeof(T)>>(simt::loadData<T>(from, i));
    word[w] |= std::uint64_t{bits} << shift;
  });
  return fromBits<Cell>(word);
}

template <class Cell, class T>
TUTTI_DEVICE void storeElements(T* to, unsigned n, const Cell& cell) {
  std::uint64_t word[sizeof(Cell) / 8];
  __builtin_memcpy(word, &cell, sizeof(Cell));
  forElements<Cell, T>(n, [&](unsigned w, std::size_t shift, unsigned i) {
    const auto bits = static_cast<simt::UnsignedOf<sizeof(T)>>(word[w] >> shift);
    simt::storeData(to, i, fromBits<T>(bits));
  });
}

}  // namespace tutti::device
