// Direct algorithms: ranks that all reach each other exchange without intermediaries, over any Direct… primitives.
//
// One shot (all-reduce): everybody sends all of its input to everybody and reduces all inputs itself. One hop, but each
// rank reads n vectors. Two shots: the vector is cut into n chunks; chunk c of every rank goes to rank c (first shot),
// which reduces all n in one pass and hands the result to everybody (second shot). Inputs are always combined in the
// order of ranks 0..n-1, so all ranks hold the same bits.
//
//   rank 1 of 3      first shot: in[0] -> 0, in[2] -> 2      reduce: from 0, in[1], from 2      second: to 2, to 0
//
// Reduce-scatter is the first shot with its reduction, all-gather the second shot. Long vectors take several turns,
// kAhead of which are sent ahead of the one that is being reduced, so that a rank has as much to do as possible before
// it must wait. docs/protocols.md shows why a FIFO's depth suffices.
#pragma once

#include "device/partition.h"
#include "device/prims/prims_direct_ll.h"

namespace tutti::device {

template <Protocol kProtocol, class T, class Op>
struct DirectPrimsFor;
template <class T, class Op>
struct DirectPrimsFor<Protocol::Simple, T, Op> {
  using Type = DirectSimple<T, Op>;
};
template <class T, class Op>
struct DirectPrimsFor<Protocol::LL, T, Op> {
  using Type = DirectLL<T, Op>;
};
template <Protocol kProtocol, class T, class Op>
using DirectPrims = typename DirectPrimsFor<kProtocol, T, Op>::Type;

/// Turns sent ahead. With two slots a turn at most 2 (docs/protocols.md).
inline constexpr std::uint64_t kAhead = 2;

/// How elements are spread over turns, and over ranks in a turn: equal shares of whole grains.
struct Turns {
  std::uint64_t n;
  std::uint64_t chunk;  ///< elements of one rank's share in one turn
};

/// `share`: what one rank may get in a turn, a multiple of `unit`; `ranks`: who share a turn (1: everybody gets all).
/// All in elements.
TUTTI_PURE Turns turnsOf(std::uint64_t count, std::uint64_t share, unsigned ranks, std::uint64_t unit) {
  if (count == 0) return {0, 0};
  const std::uint64_t n = divideUp(count, share * ranks);
  const std::uint64_t chunk = divideUp(divideUp(count, n * ranks), unit) * unit;
  return {divideUp(count, chunk * ranks), chunk};
}

/// Runs push(t), then middle(t), then, if there is one, last(t) of every turn, each in the order of turns.
template <class Push, class Middle, class Last>
TUTTI_DEVICE void runTurns(std::uint64_t turns, Push push, Middle middle, Last last) {
  for (std::uint64_t t = 0; t < smaller(kAhead, turns); ++t) push(t);
  for (std::uint64_t t = 0; t < turns + kAhead; ++t) {
    if (t + kAhead < turns) push(t + kAhead);
    if (t < turns) middle(t);
    if (t >= kAhead) last(t - kAhead);
  }
}

struct NoLast {
  TUTTI_DEVICE void operator()(std::uint64_t) const {}
};

/// Elements a verb may move per peer: what the plan says, but never more than a slot holds.
template <class Prims>
TUTTI_DEVICE std::uint64_t shareOf(const Prims& prims, std::uint64_t planned, std::size_t elementBytes) {
  const std::uint64_t grain = grainOf(elementBytes);
  const std::uint64_t most = smaller(planned, prims.slotElements()) / grain * grain;
  return most == 0 ? grain : most;
}

/// What a channel does of a work, in elements.
struct DirectWork {
  Part part;
  std::uint64_t block;    ///< of one rank (all-gather, reduce-scatter)
  std::uint64_t planned;  ///< what the plan lets a rank have in a turn
};

template <class Prims, class T>
TUTTI_DEVICE void oneShotAllReduce(Prims& prims, const DirectWork& work, const T* in, T* out) {
  const Turns turns = turnsOf(work.part.count, shareOf(prims, work.planned, sizeof(T)), 1, grainOf(sizeof(T)));
  runTurns(
      turns.n,
      [&](std::uint64_t t) {
        const Part now = pieceOf(work.part, turns.chunk, t);
        prims.pushAll(in + now.begin, nullptr, now.count, in != out);
      },
      [&](std::uint64_t t) {
        const Part now = pieceOf(work.part, turns.chunk, t);
        prims.template reduce<false>(in + now.begin, out + now.begin, now.count);
      },
      NoLast());
}

template <class Prims, class T>
TUTTI_DEVICE void directAllReduce(Prims& prims, const DirectWork& work, const T* in, T* out) {
  const Peers peers = prims.peers();
  const Turns turns = turnsOf(work.part.count, shareOf(prims, work.planned, sizeof(T)), peers.n, grainOf(sizeof(T)));
  const auto chunkOf = [&](std::uint64_t t, int rank) { return pieceOf(work.part, turns.chunk, t * peers.n + rank); };
  runTurns(
      turns.n, [&](std::uint64_t t) { prims.push(in, [&](int p) { return chunkOf(t, p); }); },
      [&](std::uint64_t t) {
        const Part own = chunkOf(t, peers.self);
        prims.template reduce<true>(in + own.begin, out + own.begin, own.count);
      },
      [&](std::uint64_t t) {
        prims.gather(
            out, [&](int p) { return chunkOf(t, p); }, in == out);
      });
}

/// `in` holds n blocks of work.block elements, `out` one.
template <class Prims, class T>
TUTTI_DEVICE void directReduceScatter(Prims& prims, const DirectWork& work, const T* in, T* out) {
  const Turns turns = turnsOf(work.part.count, shareOf(prims, work.planned, sizeof(T)), 1, grainOf(sizeof(T)));
  runTurns(
      turns.n,
      [&](std::uint64_t t) {
        const Part now = pieceOf(work.part, turns.chunk, t);
        prims.push(in, [&](int p) { return Part{p * work.block + now.begin, now.count}; });
      },
      [&](std::uint64_t t) {
        const Part now = pieceOf(work.part, turns.chunk, t);
        prims.template reduce<false>(in + prims.peers().self * work.block + now.begin, out + now.begin, now.count);
      },
      NoLast());
}

/// `in` holds one block of work.block elements, `out` n.
template <class Prims, class T>
TUTTI_DEVICE void directAllGather(Prims& prims, const DirectWork& work, const T* in, T* out) {
  const Turns turns = turnsOf(work.part.count, shareOf(prims, work.planned, sizeof(T)), 1, grainOf(sizeof(T)));
  T* const own = out + prims.peers().self * work.block;
  runTurns(
      turns.n,
      [&](std::uint64_t t) {
        const Part now = pieceOf(work.part, turns.chunk, t);
        prims.pushAll(in + now.begin, in == own ? nullptr : own + now.begin, now.count, true);
      },
      [&](std::uint64_t t) {
        const Part now = pieceOf(work.part, turns.chunk, t);
        prims.gather(out, [&](int p) { return Part{p * work.block + now.begin, now.count}; });
      },
      NoLast());
}

/// One work of one channel.
template <class M, class Prims, class T>
TUTTI_DEVICE void runDirect(Prims& prims, const DirectWork& work, const T* in, T* out) {
  if constexpr (M::algorithm == Algorithm::OneShot) oneShotAllReduce(prims, work, in, out);
  if constexpr (M::algorithm == Algorithm::Direct) {
    if constexpr (M::func == Func::AllReduce) directAllReduce(prims, work, in, out);
    if constexpr (M::func == Func::ReduceScatter) directReduceScatter(prims, work, in, out);
    if constexpr (M::func == Func::AllGather) directAllGather(prims, work, in, out);
  }
}

}  // namespace tutti::device
