// Who does what where a network reduces by itself: the crews of a block, by what this rank is on its node.
#pragma once

#include "device/collectives/collnet.h"

namespace tutti::device {

/// CollNetDirect: ranks of a node and its heads talk to each other without intermediaries.
template <class M, class T, class Op>
TUTTI_DEVICE void runCollNetDirect(const KernelBlock& block, const CollWork& work) {
  constexpr bool kBlocks = M::func != Func::AllReduce;
  const CollNetView& net = *block.comm->collNet;
  const CollNetTask<T, Op> task(block, work, M::func, directCut(M::func, net, work.count, work.chunkBytes / sizeof(T)));
  const bool isHead = net.head >= 0;
  const bool hasOtherHeads = net.nHeads > (isHead ? 1 : 0);
  const CollNetPlace place =
      collNetPlace(directShares(M::func, isHead, hasOtherHeads), block.thread.index(), block.thread.threads());
  if constexpr (M::func != Func::AllGather) {
    if (place.role == CollNetRole::Scatter) return collNetScatter<kBlocks>(task, place);
  }
  if constexpr (M::func != Func::ReduceScatter) {
    if (place.role == CollNetRole::Gather) return collNetGather<kBlocks>(task, place);
  }
  if (place.role != CollNetRole::Reduce && place.role != CollNetRole::Broadcast) return;
  const CollNetHead head{
      net.direct[block.channel], net.head, block.channel, ConnKind::Mesh, net.locals, -1, net.nLocals, net.local};
  if (place.role == CollNetRole::Reduce) {
    if constexpr (M::func == Func::AllGather) collNetContribute(task, place, head);
    if constexpr (M::func != Func::AllGather) collNetReduce<kBlocks>(task, place, head);
  } else {
    if constexpr (M::func == Func::AllReduce) collNetBroadcast(task, place, head);
    if constexpr (M::func == Func::AllGather) collNetSpread(task, place, head);
    if constexpr (M::func == Func::ReduceScatter) collNetKeep(task, place, head);
  }
}

/// CollNetChain: from the channel's head through all ranks of its node.
template <class M, class T, class Op>
TUTTI_DEVICE void runCollNetChain(const KernelBlock& block, const CollWork& work) {
  static_assert(M::func == Func::AllReduce);
  const CollNetView& net = *block.comm->collNet;
  const CollNetChainPlace& chain = net.chainPlaces[block.channel];
  const CollNetTask<T, Op> task(block, work, M::func, chainCut(net, work.count, work.chunkBytes / sizeof(T)));
  const CollNetPlace place = collNetPlace(chainShares(), block.thread.index(), block.thread.threads());
  if (chain.up < 0) {
    const CollNetHead head{net.chain[block.channel], 0,       static_cast<unsigned>(chain.position),
                           ConnKind::Graph,          nullptr, chain.down,
                           chain.down < 0 ? 1 : 2,   0};
    if (place.role == CollNetRole::Reduce) collNetReduce<false>(task, place, head);
    if (place.role == CollNetRole::Broadcast) collNetBroadcast(task, place, head);
  } else {
    if (place.role == CollNetRole::Reduce) collNetChainUp(task, place, chain);
    if (place.role == CollNetRole::Broadcast) collNetChainDown(task, place, chain);
  }
}

}  // namespace tutti::device
