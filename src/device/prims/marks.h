// How far a communicator's kernels have come, written for reports of stalls. Nobody waits for it.
#pragma once

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

}  // namespace tutti::device
