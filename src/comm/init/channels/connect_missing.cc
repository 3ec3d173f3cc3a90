#include "comm/init/channels/connect_missing.h"

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "comm/connect/channels.h"
#include "comm/connect/connect.h"
#include "comm/diagnosis/call_exchange.h"
#include "comm/ending/watching.h"
#include "comm/init/channels/connect_stage.h"
#include "comm/launch/device_pool.h"
#include "comm/state/communicator.h"
#include "comm/state/peer_wait.h"
#include "gpu/context.h"

namespace tutti::comm {

namespace {

/// How long it takes at most until it is known whether calls that differ are the cause of a failure, and some more.
constexpr milliseconds kCause{3000};

/// A peer that fails for calls that do not match gives its memory up before all have heard why.
Status causeOf(const ncclComm& comm, Status met) {
  if (faultOnConnection(met) != Fault::Other) return met;
  if (met.code() == ncclRemoteError && !comm.abort.raised() && comm.calls->suspect(met, lastErrorText())) {
    lookAtKernels();
    const Deadline deadline = Deadline::in(kCause);
    while (!comm.abort.raised() && !deadline.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!comm.abort.raised()) return met;
  restoreLastError(comm.abort.text());
  return comm.abort.status();
}

}  // namespace

Status connectMissing(ncclComm& comm, const PlanNeeds& needs, std::span<const LinkRequest> missing) {
  const PeerWait wait(comm);
  ASSIGN(const gpu::ContextGuard context, comm.parts.device->device->enter());
  ConnectContext connecting = connectContext(comm);
  connecting.peersMayBeLate = true;
  connecting.awaited = comm.progress.awaited.get();
  const Status opened = openMissing(connecting, *comm.parts.channels, missing);
  if (!opened.ok()) return causeOf(comm, opened);
  // Told once: from then on nothing of theirs is missing.
  sayConnected(needs);
  return {};
}

}  // namespace tutti::comm
