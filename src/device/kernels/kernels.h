// The bodies of kernels; gen_kernels.py writes the sources that turn them into kernels.
//
// A further algorithm brings a header with  run…<Method, T, Op>(const KernelBlock&, const CollWork&)  and a branch in
// runWork(), a line in kernel_name.h (methodExists) and one in gen_kernels.py (METHODS).
#pragma once

#include "device/collectives/direct.h"
#include "device/collectives/pair_in_place.h"
#include "device/collectives/pat.h"
#include "device/collectives/ring.h"
#include "device/collectives/run_collnet.h"
#include "device/collectives/run_tree.h"
#include "device/collectives/sendrecv.h"
#include "device/prims/block.h"
#include "device/prims/prims.h"
#include "device/prims/stamp.h"

namespace tutti::device {

/// Whether pairAllReduce() may stand for a ring of two: it has to do the same to both inputs, and to have the same bits
/// for both orders. Not on GPUs, whose kernels would grow and where it was not measured.
template <class M, class Op>
inline constexpr bool kPairs = simt::kPulls&& M::func == Func::AllReduce && !Op::kBefore;

template <class M, class T, class Op, class Prims>
TUTTI_DEVICE void runRingFunc(Prims& prims, const Ring& ring, const RingWork& ringWork, const CollWork& work) {
  const T* in = static_cast<const T*>(work.send);
  T* out = static_cast<T*>(work.recv);
  if constexpr (kPairs<M, Op>) {
    if (work.pairMethod == PairMethod::Exchange) return pairAllReduce(prims, ringWork, in, out);
  }
  if constexpr (M::func == Func::AllReduce) ringAllReduce(prims, ring, ringWork, in, out);
  if constexpr (M::func == Func::ReduceScatter) ringReduceScatter(prims, ring, ringWork, in, out);
  if constexpr (M::func == Func::AllGather) ringAllGather(prims, ring, ringWork, in, out);
  if constexpr (M::func == Func::Broadcast) ringBroadcast(prims, ring, ringWork, in, out);
  if constexpr (M::func == Func::Reduce) ringReduce(prims, ring, ringWork, in, out);
}

/// Whether PairInPlace may stand for a ring of two. A network that writes to receive buffers is one of software GPUs.
template <class M>
inline constexpr bool kPairsInPlace = simt::kPulls&& M::func == Func::AllReduce&& M::protocol == Protocol::Simple;

template <class T, class Op>
TUTTI_DEVICE void runPairInPlace(const KernelBlock& block, const Ring& ring, const RingWork& ringWork,
                                 const CollWork& work, bool streaming) {
  const int peer = ring.at(1);
  PairInPlace<T, Op> pair(block.whole(), block.view().recvFrom(ConnKind::Mesh, peer),
                          block.view().sendTo(ConnKind::Mesh, peer), Op(work), streaming);
  pair.allReduce(ring, ringWork, static_cast<const T*>(work.send), static_cast<T*>(work.recv));
}

/// Ring algorithms: the whole block is one crew.
template <class M, class T, class Op>
TUTTI_DEVICE void runRing(const KernelBlock& block, const CollWork& work) {
  const ChannelView& view = block.view();
  const int nRanks = block.comm->nRanks;
  const bool alone = nRanks == 1;
  const bool streaming = streamsOutput<T>(M::func, work, nRanks);
  const Ring ring{view.ringRanks, nRanks};
  const RingWork ringWork{partOf<T>(work, block.channel), work.count, work.chunkBytes / sizeof(T), work.root};
  if constexpr (kPairsInPlace<M>) {
    if (work.pairMethod == PairMethod::InPlace) return runPairInPlace<T, Op>(block, ring, ringWork, work, streaming);
  }
  PrimsOf<M::protocol, T, Op> prims(block.whole(), alone ? nullptr : &view.recvFrom(ConnKind::Graph, view.ringPrev),
                                    alone ? nullptr : &view.sendTo(ConnKind::Graph, view.ringNext), Op(work),
                                    streaming);
  runRingFunc<M, T, Op>(prims, ring, ringWork, work);
  prims.finish();
}

/// Algorithms that talk to many peers: the whole block is one crew.
template <class M, class T, class Op>
TUTTI_DEVICE void runPeers(const KernelBlock& block, const CollWork& work) {
  const T* in = static_cast<const T*>(work.send);
  T* out = static_cast<T*>(work.recv);
  const int nRanks = block.comm->nRanks;
  const bool streaming = streamsOutput<T>(M::func, work, nRanks);
  const Part part = partOf<T>(work, block.channel);
  if (nRanks == 1) {
    PrimsSimple<T, Op>(block.whole(), nullptr, nullptr, Op(work), streaming)
        .copyLocal(in + part.begin, out + part.begin, part.count);
    return;
  }
  const DirectSetup<Op> setup{block.whole(), &peersOf(block), block.comm, &block.view(), Op(work), streaming};
  if constexpr (M::algorithm == Algorithm::Pat) {
    runPat<M::func>(setup, part, work.count, in, out);
  } else {
    DirectPrims<M::protocol, T, Op> prims(setup);
    runDirect<M>(prims, DirectWork{part, work.count, work.chunkBytes / sizeof(T)}, in, out);
    prims.finish();
  }
}

/// One work of one channel.
template <class M, class T, class Op>
TUTTI_DEVICE void runWork(const KernelBlock& block, const CollWork& work) {
  if constexpr (M::algorithm == Algorithm::Ring) {
    runRing<M, T, Op>(block, work);
  } else if constexpr (M::algorithm == Algorithm::Tree) {
    runTree<M, T, Op>(block, work);
  } else if constexpr (M::algorithm == Algorithm::OneShot || M::algorithm == Algorithm::Direct ||
                       M::algorithm == Algorithm::Pat) {
    runPeers<M, T, Op>(block, work);
  } else if constexpr (M::algorithm == Algorithm::CollNetDirect) {
    runCollNetDirect<M, T, Op>(block, work);
  } else if constexpr (M::algorithm == Algorithm::CollNetChain) {
    runCollNetChain<M, T, Op>(block, work);
  } else {
    static_assert(M::algorithm == Algorithm::Ring, "gen_kernels.py asks for an algorithm that has no body here");
  }
}

/// Body of a collective kernel.
template <class M, class T, template <class> class Op>
TUTTI_DEVICE void collectiveKernel(simt::Thread t, KernelShared& shared, const KernelArgs& args) {
  markBegin(t, args);
  clearShared(t, shared);
  KernelBlock block{t, &shared, args.comm, args.firstChannel + t.block()};
  for (unsigned i = 0; i < args.nWorks; ++i) {
    const CollWork& work = args.coll[i];
    if (block.channel < work.channelLo || block.channel > work.channelHi) continue;
    if constexpr (simt::kPulls) block.registered = args.registered[i] != 0;
    stampBegin(t, args, i);
    runWork<M, T, Op<T>>(block, work);
    stampEnd(t, args, i);
  }
  simt::finishStreaming();
  markEnd(t, args, block.channel);
}

/// Body of the send/recv kernel: one half of the block sends, the other receives. The second one sends, for on the
/// software GPU, where a half is one thread, whoever comes last to a barrier goes on first: what this rank sends has
/// been offered when it receives, which keeps its threads busy, and no peer waits for that long.
TUTTI_DEVICE void sendRecvKernel(simt::Thread t, KernelShared& shared, const KernelArgs& args) {
  markBegin(t, args);
  clearShared(t, shared);
  const KernelBlock block{t, &shared, args.comm, args.firstChannel + t.block()};
  if (block.halfIndex() == 1) sendMessages(block.half(), args, block.channel);
  if (block.halfIndex() == 0) recvMessages(block.half(), args, block.channel);
  t.syncBlock();
  simt::finishStreaming();
  markEnd(t, args, block.channel);
}

}  // namespace tutti::device
