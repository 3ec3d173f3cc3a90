#include "comm/init/channels/progress_stage.h"

#include "base/log.h"
#include "comm/diagnosis/call_exchange.h"
#include "comm/ending/watching.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/launch.h"
#include "comm/state/communicator.h"
#include "proxy/group.h"

namespace tutti::comm {

namespace {

/// How the engine sees this communicator.
proxy::GroupHooks progressHooks(ncclComm& comm) {
  proxy::GroupHooks hooks;
  // As the watch over kernels saw them a quarter of a second ago at most: a call of the driver could wait for a thread
  // that waits, with a lock of the driver's, for the very kernel that the engine serves. Graphs hold the group.
  hooks.busy = [&launcher = *comm.parts.launcher] { return launcher.launchedUnseen(); };
  hooks.aborted = [&abort = comm.abort] { return abort.raised(); };
  hooks.events = comm.parts.events;
  // What was reported names connection, rank, host and cause.
  hooks.failed = [&comm](Status why) {
    // Messages of a wrong length, or from somebody who waits for none, may be those of another call.
    if (faultOnConnection(why) == Fault::Other && comm.calls->suspect(why, lastErrorText())) return lookAtKernels();
    failComm(comm, why, faultOnConnection(why));
  };
  return hooks;
}

}  // namespace

Status beginProgress(ncclComm& comm) {
  ASSIGN(comm.parts.progress, comm.parts.device->group(progressHooks(comm)));
  return {};
}

}  // namespace tutti::comm
