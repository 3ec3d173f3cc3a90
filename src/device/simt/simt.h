// The whole contract between device code and its two worlds: a GPU (nvcc) and the software GPU (any C++ compiler).
// Device code includes this and nothing of CUDA. Every asm statement and compiler #if of the project lives in the two
// files included at the end, which both define:
//
//   TUTTI_DEVICE                    marks a function that runs on the device; always inlined
//   TUTTI_DEVICE_RARE               the same for what a CPU rarely runs: not inlined there
//   TUTTI_HOST_DEVICE               … and on the host as well
//   TUTTI_KERNEL(Name, Params, Shared, maxThreads, body)
//                                   defines kernel `Name` taking `const Params&`; `Shared` is its shared struct
//                                   (trivially constructible); `body` is called as body(simt::Thread, Shared&, const
//                                   Params&)
//   TUTTI_UNROLL                    before a loop of constant length
//   TUTTI_NO_UNROLL                 before a loop that should stay small
//   tutti::simt::Pack16             16 bytes, aligned, moved as one access on a GPU
//   tutti::simt::Thread             the calling CUDA thread, passed by value; members:
//     index() threads() block() blocks() lane() warp()
//     syncBlock()                   all threads of the block
//     syncGroup(id, n)              named barrier, id 1..15, n a multiple of 32; with a Group: nothing if it is one
//     thread syncWarp()                    orders memory among the warp like a barrier shuffle(v, lane)  ballot(p)
//     any(p)
//                                   warp-wide; order no memory
//     loadRelaxedSys/Acquire(p)     u32, u64; system scope
//     storeRelaxedSys/Release(p,v)  u32, u64; system scope
//     storeCreditSys(p, v)          gives back memory that the threads of a group have read before their last barrier:
//                                   who learns that by loadCreditSys(p), and then takes a branch or a barrier that
//                                   depends on it, may write there. What was stored before is not shown by it
//     loadVolatile/storeVolatile    one access of 4, 8 or 16 bytes, no ordering
//     fenceBlock() fenceGpu() fenceSys()
//     loadLine16(group, p) storeLine16(group, p, pack)
//                                   one of the 8 parts of a 128-byte line whose last 8 bytes are its flag.
//                                   Warp-synchronous: all threads of a warp of the group call it together, with p null
//                                   where there is nothing to do (loads give zeros); a group of one thread stores the
//                                   parts in ascending order and loads the last part first. If the load of a last part
//                                   saw what a store left, the loads of the other parts by the same warp-wide call (one
//                                   thread: later) see it too. No other access is ordered by it
//     pause(again)                  after an unsuccessful poll; again: nothing was done since the last one
//     trap(message)
//     anew(i)                       i, of which the compiler does not know that it has computed with it before: it
//     keeps
//                                   no register for that
//     nanoseconds()                 the device's clock: %globaltimer; the host's steady clock on the software GPU
//   tutti::simt::Group{rank, size}  threads that share a piece of work
//   tutti::simt::forEachPack(group, n, f)
//                                   calls f(i) for this thread's share of 0..n-1: strided per thread on a GPU
//                                   (coalescing), one contiguous run per fiber on a CPU (a strided reduction of 512 KiB
//                                   over 64 fibers runs at a quarter of the speed); the calls must not depend on each
//                                   other
//   tutti::simt::forEachBatch<B>(group, n, f)
//                                   the same, f<N>(i, stride) doing i, i+stride, … N times with N = B or 1
//   tutti::simt::forEachRun(group, n, most, f)
//                                   calls f(subgroup, begin, count): once with everything on a GPU, for cache-sized
//                                   pieces of the fiber's run on a CPU
//   tutti::simt::copyBytes(group, to, from, bytes, streaming)
//   tutti::simt::loadData<P>(base, i) storeData(base, i, pack)
//                                   element or pack i; never served from a cache that peers do not keep coherent
//   tutti::simt::loadPlain<P>(base, i) storePlain(base, i, pack)
//                                   the same for memory that nobody else looks at, and for loops over data that are not
//                                   entered while storesAreDelayed(): they become vectors on a CPU
//   tutti::simt::kDelayPossible storesAreDelayed()
//                                   the weak-memory mode of the software GPU (docs/softgpu.md)
//   tutti::simt::kPackBytes kRunBytes kFusedStores kLoneThreads kHoistsOps kPulls
//                 streamingPays(bytes) streamingToPeerPays(bytes) finishStreaming() orderReads()
//                                   what suits this world
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#include "device/simt/simt_cuda.h"  // IWYU pragma: export
#else
#include "device/simt/simt_host.h"  // IWYU pragma: export
#endif

namespace tutti::simt {

inline constexpr unsigned kWarpSize = 32;

/// How often a wait looks at the abort word: every 2^n-th unsuccessful poll.
inline constexpr unsigned kAbortPollMask = 0x3f;

/// The only spin loop of device code: polls until ready() is true or the abort word is set. Returns true when ready,
/// false on abort. Callers leave by falling through to their barriers, never by returning early.
template <class Ready>
TUTTI_DEVICE bool spinUntil(Thread t, const std::uint32_t* abortWord, Ready ready) {
  for (unsigned polls = 1; !ready(); ++polls) {
    if ((polls & kAbortPollMask) == 0 && t.loadRelaxedSys(abortWord) != 0) return false;
    t.pause(polls > 1);
  }
  return true;
}

/// The same for a warp that polls together: ready() is warp-wide and has the same answer for all of its threads, as has
/// this function.
template <class Ready>
TUTTI_DEVICE bool spinWarpUntil(Thread t, const std::uint32_t* abortWord, Ready ready) {
  for (unsigned polls = 1; !ready(); ++polls) {
    if ((polls & kAbortPollMask) == 0 && t.any(t.loadRelaxedSys(abortWord) != 0)) return false;
    t.pause(polls > 1);
  }
  return true;
}

}  // namespace tutti::simt
