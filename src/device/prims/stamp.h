// What kernels write for those who want to know: how far they have come, for reports of stalls, and when their channels
// work, for profilers and traces. Nobody waits for it.
#pragma once

#include "device/prims/prims_common.h"
#include "device/simt/simt.h"
#include "device/work.h"

namespace tutti::device {

/// A block of the kernel begins.
TUTTI_DEVICE void markBegin(simt::Thread t, const KernelArgs& args) {
  if (args.marks == nullptr || t.block() != 0 || t.index() != 0) return;
  t.storeRelaxedSys(&args.marks->begun, args.number);
}

/// The block, which is `channel`, is about to end.
TUTTI_DEVICE void markEnd(simt::Thread t, const KernelArgs& args, unsigned channel) {
  if (args.marks == nullptr || t.index() != 0) return;
  t.storeRelaxedSys(&args.marks->ended[channel], args.number);
}

/// Writes when the block's work `i` begins or ends, where somebody wants to know.
TUTTI_DEVICE void stampBegin(simt::Thread t, const KernelArgs& args, unsigned i) {
  if (args.stamps == nullptr || t.index() != 0) return;
  t.storeRelaxedSys(&args.stamps[collStamp(args.nWorks, t.block(), t.anew(i))].begin, t.nanoseconds());
}
TUTTI_DEVICE void stampEnd(simt::Thread t, const KernelArgs& args, unsigned i) {
  if (args.stamps == nullptr) return;
  t.syncBlock();
  if (t.index() == 0)
    t.storeRelaxedSys(&args.stamps[collStamp(args.nWorks, t.block(), t.anew(i))].end, t.nanoseconds());
}

/// Writes when the crew's half of work `i` begins or ends, where somebody wants to know; `half` as messageStamp() has
/// it.
TUTTI_DEVICE void stampBegin(const Crew& crew, const KernelArgs& args, unsigned i, unsigned half) {
  if (args.stamps == nullptr || crew.group.rank != 0) return;
  const simt::Thread t = crew.thread;
  t.storeRelaxedSys(&args.stamps[messageStamp(args.nWorks, t.block(), t.anew(i), half)].begin, t.nanoseconds());
}
TUTTI_DEVICE void stampEnd(const Crew& crew, const KernelArgs& args, unsigned i, unsigned half) {
  if (args.stamps == nullptr) return;
  const simt::Thread t = crew.thread;
  t.syncGroup(crew.barrier, crew.group);
  if (crew.group.rank != 0) return;
  t.storeRelaxedSys(&args.stamps[messageStamp(args.nWorks, t.block(), t.anew(i), half)].end, t.nanoseconds());
}

}  // namespace tutti::device
