// Graph capture: whether a stream records, and how a graph waits for work outside it and work outside waits for it.
#pragma once

#include "base/status.h"
#include "gpu/context.h"
#include "gpu/event.h"

namespace tutti::gpu {

/// Whether, and in which capture, a stream records instead of running.
struct CaptureState {
  bool capturing = false;
  unsigned long long id = 0;  ///< unique per capture in this process; 0 when not capturing
  CUgraph graph = nullptr;    ///< the graph being made; valid until the capture ends
};

/// State of any stream, the legacy and the per-thread default stream included. The context of the stream must be
/// current. Errors: ncclInvalidUsage if the capture was invalidated.
Result<CaptureState> captureState(const Driver& driver, CUstream stream);

/// Makes what `stream` captures from here on wait, at every replay, for the last record of `event` before the replay,
/// wherever that record was made. (Event::waitOn() would make it part of the capture.) The context must be current.
Status waitAtReplay(const Device& device, const CaptureState& capture, CUstream stream, const Event& event);

/// Records `event`, at every replay, when what `stream` captured so far is done, for streams and graphs outside.
Status recordAtReplay(const Device& device, const CaptureState& capture, CUstream stream, CUevent event);

}  // namespace tutti::gpu
