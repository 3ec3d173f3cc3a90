// Who does what in a tree: the crews of a block, their connections and primitives.
#pragma once

#include "device/collectives/tree.h"
#include "device/prims/block.h"
#include "device/prims/prims.h"

namespace tutti::device {

/// A rank in a tree as its block sees it. Connections of absent ranks are null.
struct TreeConns {
  const RecvConn* fromChildren[kMaxTreeChildren];
  const SendConn* toChildren[kMaxTreeChildren];
  const RecvConn* fromParent;
  const SendConn* toParent;
};

TUTTI_DEVICE TreeConns treeConns(const ChannelView& view) {
  TreeConns conns{};
  TUTTI_UNROLL
  for (int k = 0; k < kMaxTreeChildren; ++k) {
    const int child = view.tree.down[k];
    if (child < 0) continue;
    conns.fromChildren[k] = &view.recvFrom(ConnKind::Graph, child);
    conns.toChildren[k] = &view.sendTo(ConnKind::Graph, child);
  }
  if (view.tree.up >= 0) {
    conns.fromParent = &view.recvFrom(ConnKind::Graph, view.tree.up);
    conns.toParent = &view.sendTo(ConnKind::Graph, view.tree.up);
  }
  return conns;
}

/// The primitives of a tree for one method, type and operation. Passing down is a matter of bytes.
template <class M, class T, class Op>
struct TreePrims {
  using Root = PrimsOf<M::protocol, T, Op, Fan<kMaxTreeChildren, kMaxTreeChildren>>;
  using Up = PrimsOf<M::protocol, T, Op, Fan<kMaxTreeChildren, 1>>;
  using Down = PrimsOf<M::protocol, std::int8_t, CopyOp<std::int8_t>, Fan<1, kMaxTreeChildren>>;

  TUTTI_DEVICE static typename Root::Peers rootPeers(const TreeConns& c) {
    return {{c.fromChildren[0], c.fromChildren[1], c.fromChildren[2]},
            {c.toChildren[0], c.toChildren[1], c.toChildren[2]}};
  }
  TUTTI_DEVICE static typename Up::Peers upPeers(const TreeConns& c) {
    return {{c.fromChildren[0], c.fromChildren[1], c.fromChildren[2]}, {c.toParent}};
  }
  TUTTI_DEVICE static typename Down::Peers downPeers(const TreeConns& c) {
    return {{c.fromParent}, {c.toChildren[0], c.toChildren[1], c.toChildren[2]}};
  }
};

TUTTI_DEVICE TreeWork bytesOf(const TreeWork& work, std::size_t elementBytes) {
  return {{work.part.begin * elementBytes, work.part.count * elementBytes}, work.chunk * elementBytes};
}

/// The root has no parent to overlap with: the whole block is one crew.
template <class M, class T, class Op>
TUTTI_DEVICE void runTreeRoot(const KernelBlock& block, const CollWork& work, const TreeWork& treeWork) {
  using Prims = TreePrims<M, T, Op>;
  const T* in = static_cast<const T*>(work.send);
  T* out = static_cast<T*>(work.recv);
  const bool streaming = streamsOutput<T>(M::func, work, block.comm->nRanks);
  typename Prims::Root prims(block.whole(), Prims::rootPeers(treeConns(block.view())), Op(work), streaming);
  if (block.comm->nRanks == 1) {
    prims.copyLocal(in + treeWork.part.begin, out + treeWork.part.begin, treeWork.part.count);
  } else {
    treeRoot(prims, treeWork, in, out);
  }
  prims.finish();
}

/// Everybody else: half of the block sends up, the other half passes down; a lone thread does both in turns.
template <class M, class T, class Op>
TUTTI_DEVICE void runTreeBelowRoot(const KernelBlock& block, const CollWork& work, const TreeWork& treeWork) {
  using Prims = TreePrims<M, T, Op>;
  const TreeConns conns = treeConns(block.view());
  const T* in = static_cast<const T*>(work.send);
  auto* out = static_cast<std::int8_t*>(work.recv);
  const bool streaming = streamsOutput<T>(M::func, work, block.comm->nRanks);
  const bool alone = block.thread.threads() < 2 * simt::kWarpSize;
  if constexpr (simt::kLoneThreads) {
    if (alone) {
      typename Prims::Up up(block.whole(), Prims::upPeers(conns), Op(work), false);
      typename Prims::Down down(block.whole(), Prims::downPeers(conns), {}, streaming);
      treeUpAndDown(up, down, treeWork, in, out);
      up.finish();
      down.finish();
      return;
    }
  }
  if (block.halfIndex() == 0) {
    typename Prims::Up up(block.half(), Prims::upPeers(conns), Op(work), false);
    treeUp(up, treeWork, in);
    up.finish();
  } else if (block.halfIndex() == 1) {
    typename Prims::Down down(block.half(), Prims::downPeers(conns), {}, streaming);
    treeDown(down, bytesOf(treeWork, sizeof(T)), out);
    down.finish();
  }
}

/// Body of a tree's work.
template <class M, class T, class Op>
TUTTI_DEVICE void runTree(const KernelBlock& block, const CollWork& work) {
  static_assert(M::func == Func::AllReduce);
  const TreeWork treeWork{partOf<T>(work, block.channel), work.chunkBytes / sizeof(T)};
  if (block.comm->nRanks == 1 || block.view().tree.up < 0) {
    runTreeRoot<M, T, Op>(block, work, treeWork);
  } else {
    runTreeBelowRoot<M, T, Op>(block, work, treeWork);
  }
}

}  // namespace tutti::device
