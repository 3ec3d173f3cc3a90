// The bodies of kernels; gen_kernels.py writes the sources that turn them into kernels.
#pragma once

#include "device/prims_simple.h"
#include "device/ring.h"
#include "device/sendrecv.h"

namespace tutti::device {

/// Shared memory of every kernel: one entry per crew.
struct KernelShared {
  GroupShared crew[2];
};

/// Shared memory is not cleared by a GPU.
TUTTI_DEVICE void clearShared(simt::Thread t, KernelShared& shared) {
  if (t.index() < 2) t.storeVolatile(&shared.crew[t.index()].aborted, std::uint32_t{0});
  if (t.threads() == 1) t.storeVolatile(&shared.crew[1].aborted, std::uint32_t{0});
  t.syncBlock();
}

/// Bytes of output that this block writes; decides whether they bypass the cache.
template <class T>
TUTTI_DEVICE bool streamsOutput(Func func, const CollWork& work, int nRanks) {
  const bool gathers = func == Func::AllGather;
  return work.send != work.recv && simt::streamingPays(work.count * sizeof(T) * (gathers ? nRanks : 1));
}

template <Func kFunc, class T, class Prims>
TUTTI_DEVICE void runRing(Prims& prims, const Ring& ring, const RingWork& ringWork, const CollWork& work) {
  const T* in = static_cast<const T*>(work.send);
  T* out = static_cast<T*>(work.recv);
  if constexpr (kFunc == Func::AllReduce) ringAllReduce(prims, ring, ringWork, in, out);
  if constexpr (kFunc == Func::ReduceScatter) ringReduceScatter(prims, ring, ringWork, in, out);
  if constexpr (kFunc == Func::AllGather) ringAllGather(prims, ring, ringWork, in, out);
  if constexpr (kFunc == Func::Broadcast) ringBroadcast(prims, ring, ringWork, in, out);
  if constexpr (kFunc == Func::Reduce) ringReduce(prims, ring, ringWork, in, out);
}

/// One work of one channel.
template <Func kFunc, class T, class Op>
TUTTI_DEVICE void runCollective(const Crew& crew, const CommView& comm, const CollWork& work, unsigned channel) {
  const ChannelView& view = comm.channels[channel];
  const bool alone = comm.nRanks == 1;
  PrimsSimple<T, Op> prims(crew, alone ? nullptr : &view.recvFrom(ConnKind::Graph, view.ringPrev),
                           alone ? nullptr : &view.sendTo(ConnKind::Graph, view.ringNext), Op(work),
                           streamsOutput<T>(kFunc, work, comm.nRanks));
  const RingWork ringWork{
      channelPart(work.count, sizeof(T), work.channelHi - work.channelLo + 1u, channel - work.channelLo), work.count,
      work.chunkBytes / sizeof(T), work.root};
  runRing<kFunc, T>(prims, Ring{view.ringRanks, comm.nRanks}, ringWork, work);
  prims.finish();
}

/// Body of a collective kernel: the whole block is one crew.
template <Func kFunc, class T, template <class> class Op>
TUTTI_DEVICE void collectiveKernel(simt::Thread t, KernelShared& shared, const KernelArgs& args) {
  clearShared(t, shared);
  const unsigned channel = args.firstChannel + t.block();
  const Crew crew{t, {t.index(), t.threads()}, 1, &shared.crew[0], args.comm->abortWord};
  for (unsigned i = 0; i < args.nWorks; ++i) {
    const CollWork& work = args.coll[i];
    if (channel < work.channelLo || channel > work.channelHi) continue;
    runCollective<kFunc, T, Op<T>>(crew, *args.comm, work, channel);
  }
  simt::finishStreaming();
}

/// Body of the send/recv kernel. Blocks of 64 threads or more are split into halves of whole warps; in smaller ones
/// thread 0 sends and thread 1 receives.
TUTTI_DEVICE void sendRecvKernel(simt::Thread t, KernelShared& shared, const KernelArgs& args) {
  clearShared(t, shared);
  const unsigned channel = args.firstChannel + t.block();
  const unsigned half = t.threads() < 2 * simt::kWarpSize ? 1 : t.threads() / 2 / simt::kWarpSize * simt::kWarpSize;
  const bool sends = t.index() < half;
  const simt::Group group{sends ? t.index() : t.index() - half, half};
  if (group.rank < half) {
    if (sends) {
      sendMessages(Crew{t, group, 1, &shared.crew[0], args.comm->abortWord}, args, channel);
    } else {
      recvMessages(Crew{t, group, 2, &shared.crew[1], args.comm->abortWord}, args, channel);
    }
  }
  t.syncBlock();
  simt::finishStreaming();
}

}  // namespace tutti::device
