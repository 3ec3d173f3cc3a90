// What the crews of a block have that works with a network that reduces by itself: state of their connections to other
// ranks of the node in shared memory, and what a collective is to this rank.
#pragma once

#include "device/collnet_cut.h"
#include "device/number/reduce_op.h"
#include "device/prims/block.h"
#include "device/prims/peer_fifos.h"

namespace tutti::device {

using CollNetFifos = PeerFifosOf<kMaxCollNetLocals>;
using CollNetPeers = PeerStates<kMaxCollNetLocals>;

/// Shared memory of these kernels.
struct CollNetKernelShared : KernelShared {
  CollNetPeers peers[kCollNetRoles];  ///< by crew
};

/// A collective as one rank's block sees it; elements.
template <class T, class Op>
struct CollNetTask {
  const KernelBlock& block;
  const CollWork& work;
  const CollNetView& net;
  CollNetCut cut;
  Func func;
  const T* in;
  T* out;
  bool streaming;  ///< the output is large (see Slice)

  TUTTI_DEVICE CollNetTask(const KernelBlock& blockOf, const CollWork& workOf, Func function, const CollNetCut& cutOf)
      : block(blockOf),
        work(workOf),
        net(*blockOf.comm->collNet),
        cut(cutOf),
        func(function),
        in(static_cast<const T*>(workOf.send)),
        out(static_cast<T*>(workOf.recv)),
        streaming(streamsOutput<T>(function, workOf, blockOf.comm->nRanks)) {}

  TUTTI_DEVICE Op op() const { return Op(work); }
  TUTTI_DEVICE const ChannelView& channel() const { return block.view(); }
  TUTTI_DEVICE Crew crew(const CollNetPlace& place) const {
    return block.crew(static_cast<unsigned>(place.role), {place.rank, place.size});
  }
  TUTTI_DEVICE CollNetPeers& peers(CollNetRole role) const {
    return static_cast<CollNetKernelShared*>(block.shared)->peers[static_cast<unsigned>(role)];
  }

  /// The head that is served first of the first `n`: every rank of a node begins with another one.
  TUTTI_DEVICE int firstHead(int n) const {
    const int next = net.head < 0 ? net.local : net.head + 1;
    return n == 0 ? 0 : next % n;
  }

  /// Where the block of a rail's node begins in the user's memory that has blocks of all ranks.
  TUTTI_DEVICE std::uint64_t blockAt(int rail, std::uint64_t node) const {
    return static_cast<std::uint64_t>(net.railRanks[node * net.nHeads + rail]) * work.count;
  }

  /// Calls f(at, offset, count) for what of a piece lies in a row in the user's memory: `at` there, `offset` in the
  /// piece. kBlocks: pieces are of a rail's blocks; else of the vector.
  template <bool kBlocks, class F>
  TUTTI_DEVICE void forRows(Part piece, int rail, F f) const {
    if constexpr (!kBlocks) {
      f(piece.begin, std::uint64_t{0}, piece.count);
    } else {
      if (piece.count == 0) return;
      std::uint64_t node = piece.begin / work.count;
      for (std::uint64_t done = 0; done < piece.count; ++node) {
        const Part part = partInBlock(piece, work.count, node);
        f(blockAt(rail, node) + part.begin - node * work.count, done, part.count);
        done += part.count;
      }
    }
  }

  /// Whether all blocks of a rail lie in a row there, in the order of nodes.
  TUTTI_DEVICE bool blocksInARow(int rail) const {
    for (int node = 1; node < net.nNodes; ++node) {
      if (net.railRanks[node * net.nHeads + rail] != net.railRanks[rail] + node) return false;
    }
    return true;
  }

  /// Whether a piece lies in a row there, at `at`.
  template <bool kBlocks>
  TUTTI_DEVICE bool inOneRow(Part piece, int rail, std::uint64_t& at) const {
    if constexpr (!kBlocks) {
      at = piece.begin;
      return true;
    } else {
      const std::uint64_t node = piece.begin / work.count;
      at = blockAt(rail, node) + piece.begin - node * work.count;
      return piece.end() <= (node + 1) * work.count;
    }
  }
};

/// Whether something has to be done to a complete result.
template <class Op>
TUTTI_DEVICE bool changesResult(const Op&) {
  return false;
}
template <class T>
TUTTI_DEVICE bool changesResult(const RuntimeOp<T, true>& any) {
  return any.op == DevOp::SumPostDiv;
}

/// Calls f with an operation that does only what has to be done to a complete result.
template <class Op, class F>
TUTTI_DEVICE void withAfter(const Op&, F f) {
  f(CopyOp<std::int8_t>());
}
template <class T, class F>
TUTTI_DEVICE void withAfter(const RuntimeOp<T, true>& any, F f) {
  if (changesResult(any)) return f(SumPostDivOp<T>(any.scalar));
  f(CopyOp<std::int8_t>());
}

}  // namespace tutti::device
