// A block of a kernel: its shared memory, the crews its threads form, what it works for.
#pragma once

#include "device/partition.h"
#include "device/prims/prims_common.h"
#include "device/simt/simt.h"
#include "device/work.h"

namespace tutti::device {

/// Most crews of a block.
inline constexpr unsigned kMostCrews = 4;

/// Shared memory of every kernel: one entry per crew.
struct KernelShared {
  GroupShared crew[kMostCrews];
};

/// What tells kernels apart besides element type and operation.
template <Func kFunc, Algorithm kAlgorithm, Protocol kProtocol>
struct Method {
  static constexpr Func func = kFunc;
  static constexpr Algorithm algorithm = kAlgorithm;
  static constexpr Protocol protocol = kProtocol;
};

/// One block at work: it serves one channel of one communicator. Algorithms take it, form crews and build their
/// primitives over the channel's connections.
struct KernelBlock {
  simt::Thread thread;
  KernelShared* shared;
  const CommView* comm;
  unsigned channel;
  bool registered = false;  ///< of the work that it is at

  TUTTI_DEVICE const ChannelView& view() const { return comm->channels[channel]; }

  /// Some of the threads as crew `index`; `group`: the calling one among them.
  TUTTI_DEVICE Crew crew(unsigned index, simt::Group group) const {
    return {thread, group, 1 + index, &shared->crew[index], comm->abortWord, registered};
  }
  /// All threads as one crew.
  TUTTI_DEVICE Crew whole() const { return crew(0, {thread.index(), thread.threads()}); }

  /// Threads of each half: whole warps where there are enough, else one thread each and the others idle.
  TUTTI_DEVICE unsigned halfSize() const {
    const unsigned threads = thread.threads();
    return threads < 2 * simt::kWarpSize ? 1 : threads / 2 / simt::kWarpSize * simt::kWarpSize;
  }
  /// Which half the thread is in: 0, 1, or 2 for a thread that is left over.
  TUTTI_DEVICE unsigned halfIndex() const { return thread.index() / halfSize() < 2 ? thread.index() / halfSize() : 2; }
  /// The thread's half (0 or 1) as a crew of its own. Blocks of one thread have none.
  TUTTI_DEVICE Crew half() const {
    const unsigned index = halfIndex();
    return crew(index, {thread.index() - index * halfSize(), halfSize()});
  }
};

/// Shared memory is not cleared by a GPU.
TUTTI_DEVICE void clearShared(simt::Thread t, KernelShared& shared) {
  for (unsigned i = t.index(); i < kMostCrews; i += t.threads()) {
    t.storeVolatile(&shared.crew[i].aborted, std::uint32_t{0});
  }
  t.syncBlock();
}

/// The elements (bytes) of a work that its channel moves, of the vector or of each rank's block.
template <class T>
TUTTI_DEVICE Part partOf(const CollWork& work, unsigned channel) {
  return channelPart(work.count, sizeof(T), work.channelHi - work.channelLo + 1u, channel - work.channelLo);
}

/// Whether the output is so large that it should bypass the cache.
template <class T>
TUTTI_DEVICE bool streamsOutput(Func func, const CollWork& work, int nRanks) {
  const bool gathers = func == Func::AllGather;
  return work.send != work.recv && simt::streamingPays(work.count * sizeof(T) * (gathers ? nRanks : 1));
}

}  // namespace tutti::device
