// PAT: all-gather and reduce-scatter in about log2(n) steps, for any number of ranks; meant for one rank per node,
// where every message costs the latency of the network. Step k moves 2^k blocks between ranks that are 2^k apart on the
// circle of ranks (fewer in the last step when n is no power of two).
//
// Blocks are counted from this rank: block b is that of rank + b. All-gather, k = 0, 1, …: after step k a rank has
// blocks 0..2^(k+1)-1; it gets 2^k.. from the rank 2^k after it, for which they are blocks 0... They are put where they
// belong in the output at once.
//
//   n = 6, rank r      step 0: has 0, gets 1      step 1: has 0 1, gets 2 3      step 2: has 0..3, gets 4 5
//
// Reduce-scatter is the mirror, k = …, 1, 0: a rank sends its share of blocks 2^k.. to the rank 2^k after it, for which
// they are blocks 0.... A share is own input and what earlier steps brought for that block. Those contributions stay in
// the slots in which they came until the one pass that combines them: no scratch memory. Each step uses one slot of its
// connection per turn; all are given back at the turn's end.
#pragma once

#include "device/collectives/direct.h"
#include "device/prims/fan_in.h"
#include "device/prims/peer_fifos.h"

namespace tutti::device {

/// One step of one rank: whom it sends to, whom it receives from, how many blocks either way.
struct PatStep {
  int sendTo;
  int recvFrom;
  int distance;  ///< 2^k
  int blocks;
};

TUTTI_PURE int patSteps(int n) {
  int steps = 0;
  while (1 << steps < n) ++steps;
  return steps;
}

/// The rank `distance` after this one (before it: negative).
TUTTI_PURE int patRank(int rank, int distance, int n) {
  return (rank + distance % n + n) % n;
}

TUTTI_PURE int patBlocks(int n, int k) {
  return static_cast<int>(smaller(1u << k, static_cast<unsigned>(n - (1 << k))));
}

/// All-gather: blocks 0..blocks-1 are sent, distance..distance+blocks-1 received. Steps run upwards.
TUTTI_PURE PatStep patGatherStep(int rank, int n, int k) {
  return {patRank(rank, -(1 << k), n), patRank(rank, 1 << k, n), 1 << k, patBlocks(n, k)};
}

/// Reduce-scatter: shares of blocks distance..distance+blocks-1 are sent, of 0..blocks-1 received. Steps run downwards.
TUTTI_PURE PatStep patReduceStep(int rank, int n, int k) {
  return {patRank(rank, 1 << k, n), patRank(rank, -(1 << k), n), 1 << k, patBlocks(n, k)};
}

/// Reduce-scatter: how many of the steps step+1, step+2, … bring shares of `block`: all up to the last one that a rank
/// still sends, its block + 2^k.
TUTTI_PURE int patIncoming(int n, int block, int step) {
  int last = step;
  while (block + (1 << (last + 1)) < n) ++last;
  return last - step;
}

/// Blocks that the largest message carries.
TUTTI_PURE int patMostBlocks(int n) {
  int most = 1;
  for (int k = 0; k < patSteps(n); ++k) most = patBlocks(n, k) > most ? patBlocks(n, k) : most;
  return most;
}

/// Elements of a block that a turn may move: as many as let the largest message fit into a slot.
TUTTI_PURE Turns patTurns(std::uint64_t count, int n, std::uint64_t slotBytes, std::size_t elementBytes) {
  const std::uint64_t room = slotBytes / patMostBlocks(n);
  const std::uint64_t unit = room >= kGrainBytes ? kGrainBytes : sizeof(simt::Pack16);
  const std::uint64_t share = room / unit * unit;
  return turnsOf(count, (share == 0 ? unit : share) / elementBytes, 1, unit / elementBytes);
}

/// Most ranks that slots of this size serve.
TUTTI_PURE int patMaxRanks(std::uint64_t slotBytes) {
  return static_cast<int>(slotBytes / sizeof(simt::Pack16));
}

/// What both directions know. Entry k of the connections is step k.
template <class T, class Op>
class Pat {
 public:
  /// `gathers`: which way the steps go.
  TUTTI_DEVICE Pat(const DirectSetup<Op>& setup, bool gathers)
      : rank_(setup.comm->rank),
        n_(setup.comm->nRanks),
        steps_(patSteps(n_)),
        streaming_(setup.streaming),
        op_(setup.op),
        fifos_(setup.crew, *setup.shared, Protocol::Simple, PeerFifos::kNone) {
    fifos_.forOwned({0, steps_}, [&](int k) {
      const PatStep step = gathers ? patGatherStep(rank_, n_, k) : patReduceStep(rank_, n_, k);
      fifos_.open(k, setup.channel->sendTo(ConnKind::Graph, step.sendTo),
                  setup.channel->recvFrom(ConnKind::Graph, step.recvFrom));
    });
    const PatStep first = gathers ? patGatherStep(rank_, n_, 0) : patReduceStep(rank_, n_, 0);
    slotBytes_ = fifos_.slotBytes(setup.channel->sendTo(ConnKind::Graph, first.sendTo));
  }

  /// `in` holds one block of `block` elements, `out` n; `part` is the channel's part of a block.
  TUTTI_DEVICE void allGather(Part part, std::uint64_t block, const T* in, T* out) {
    const Turns turns = patTurns(part.count, n_, slotBytes_, sizeof(T));
    for (std::uint64_t t = 0; t < turns.n; ++t) {
      const Part now = pieceOf(part, turns.chunk, t);
      T* const own = out + rank_ * block;
      if (in != own) simt::copyBytes(group(), own + now.begin, in + now.begin, now.count * sizeof(T), streaming_);
      for (int k = 0; k < steps_; ++k) {
        const PatStep step = patGatherStep(rank_, n_, k);
        sendBlocks(k, step, in, out, Piece{now, block, turns.chunk});
        recvBlocks(k, step, out, Piece{now, block, turns.chunk});
      }
    }
  }

  /// `in` holds n blocks of `block` elements, `out` one.
  TUTTI_DEVICE void reduceScatter(Part part, std::uint64_t block, const T* in, T* out) {
    const Turns turns = patTurns(part.count, n_, slotBytes_, sizeof(T));
    for (std::uint64_t t = 0; t < turns.n; ++t) {
      const Piece piece{pieceOf(part, turns.chunk, t), block, turns.chunk};
      for (int k = steps_ - 1; k >= 0; --k) sendShares(k, in, piece);
      const bool fine = fifos_.acquire(kNone, {0, 1}, extentOf(patReduceStep(rank_, n_, 0).blocks, piece));
      if (fine) {
        FanIn<T> work = share(0, in, piece, -1);
        work.out = out + piece.part.begin;
        work.streams = streaming_;
        fanIn<true>(group(), op_, work);
      }
      fifos_.release(kNone, {0, steps_}, fine);
    }
  }

  TUTTI_DEVICE void finish() { fifos_.finish({0, steps_}); }

 private:
  static constexpr Entries kNone{0, 0};

  /// What a turn moves of each block.
  struct Piece {
    Part part;
    std::uint64_t block;
    std::uint64_t stride;  ///< elements from one block's to the next one's in a slot
  };

  TUTTI_DEVICE simt::Group group() const { return fifos_.crew().group; }
  TUTTI_DEVICE PeerShared& shared() const { return fifos_.shared(); }
  TUTTI_DEVICE std::uint64_t offsetOf(int b, const Piece& piece) const {
    return patRank(rank_, b, n_) * piece.block + piece.part.begin;
  }

  /// Bytes of a slot up to the end of its last block.
  TUTTI_DEVICE static std::uint64_t extentOf(int blocks, const Piece& piece) {
    return ((blocks - 1) * piece.stride + piece.part.count) * sizeof(T);
  }

  /// Calls f(subgroup, b) for b = 0..blocks-1. Small pieces are left to a warp each. One call for both: compilers write
  /// it out where it stands.
  template <class F>
  TUTTI_DEVICE void forBlocks(int blocks, std::uint64_t bytes, F f) const {
    const simt::Group all = group();
    const bool apart = all.size > simt::kWarpSize && bytes <= kWarpBytes;
    const simt::Group some = apart ? simt::Group{all.rank % simt::kWarpSize, simt::kWarpSize} : all;
    const unsigned stride = apart ? all.size / simt::kWarpSize : 1;
    for (unsigned b = apart ? all.rank / simt::kWarpSize : 0; b < static_cast<unsigned>(blocks); b += stride) {
      f(some, static_cast<int>(b));
    }
  }

  TUTTI_DEVICE void sendBlocks(int k, const PatStep& step, const T* in, const T* out, const Piece& piece) {
    const std::uint64_t bytes = piece.part.count * sizeof(T);
    const bool fine = fifos_.acquire({k, k + 1}, kNone);
    if (fine) {
      forBlocks(step.blocks, bytes, [&](simt::Group some, int b) {
        const T* from = b == 0 ? in + piece.part.begin : out + offsetOf(b, piece);
        simt::copyBytes(some, shared().to[k] + b * piece.stride * sizeof(T), from, bytes,
                        simt::streamingToPeerPays(bytes));
      });
    }
    fifos_.release({k, k + 1}, kNone, fine, extentOf(step.blocks, piece));
  }

  TUTTI_DEVICE void recvBlocks(int k, const PatStep& step, T* out, const Piece& piece) {
    const std::uint64_t bytes = piece.part.count * sizeof(T);
    const bool fine = fifos_.acquire(kNone, {k, k + 1}, extentOf(step.blocks, piece));
    if (fine) {
      forBlocks(step.blocks, bytes, [&](simt::Group some, int b) {
        simt::copyBytes(some, out + offsetOf(step.distance + b, piece), shared().from[k] + b * piece.stride * sizeof(T),
                        bytes, false);
      });
    }
    fifos_.release(kNone, {k, k + 1}, fine);
  }

  /// The sources of a block's share: own input, then what the steps after `step` brought.
  TUTTI_DEVICE FanIn<T> share(int b, const T* in, const Piece& piece, int step) const {
    return {.own = in + offsetOf(b, piece),
            .from = shared().from,
            .fromShift = step,
            .fromOffset = b * piece.stride,
            .nSources = 1 + patIncoming(n_, b, step),
            .count = piece.part.count};
  }

  TUTTI_DEVICE void sendShares(int k, const T* in, const Piece& piece) {
    const PatStep step = patReduceStep(rank_, n_, k);
    const std::uint64_t bytes = piece.part.count * sizeof(T);
    const bool receives = k + 1 < steps_;
    const bool fine = fifos_.acquire({k, k + 1}, receives ? Entries{k + 1, k + 2} : kNone,
                                     receives ? extentOf(patReduceStep(rank_, n_, k + 1).blocks, piece) : 0);
    if (fine) {
      forBlocks(step.blocks, bytes, [&](simt::Group some, int b) {
        FanIn<T> work = share(step.distance + b, in, piece, k);
        work.to = shared().to + k;
        work.nTo = 1;
        work.toOffset = b * piece.stride;
        work.streamsTo = simt::streamingToPeerPays(bytes);
        fanIn<false>(some, op_, work);
      });
    }
    fifos_.release({k, k + 1}, kNone, fine, extentOf(step.blocks, piece));
  }

  static constexpr std::uint64_t kWarpBytes = 2048;

  int rank_;
  int n_;
  int steps_;
  bool streaming_;
  Op op_;
  PeerFifos fifos_;
  std::uint64_t slotBytes_;
};

/// One work of one channel.
template <Func kFunc, class T, class Op>
TUTTI_DEVICE void runPat(const DirectSetup<Op>& setup, Part part, std::uint64_t block, const T* in, T* out) {
  Pat<T, Op> pat(setup, kFunc == Func::AllGather);
  if constexpr (kFunc == Func::AllGather) pat.allGather(part, block, in, out);
  if constexpr (kFunc == Func::ReduceScatter) pat.reduceScatter(part, block, in, out);
  pat.finish();
}

}  // namespace tutti::device
