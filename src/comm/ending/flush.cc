#include "comm/ending/flush.h"

#include <cstdint>
#include <optional>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/connect/channels.h"
#include "comm/ending/call_watch.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/launch.h"
#include "comm/state/communicator.h"
#include "comm/state/family.h"
#include "comm/state/lost_peer.h"
#include "comm/state/membership.h"
#include "comm/state/peer_wait.h"
#include "comm/state/revocation.h"
#include "gpu/context.h"
#include "trace/comm_counts.h"
#include "trace/points.h"

namespace tutti::comm {

namespace {

Status flush(ncclComm& comm) {
  CommParts& parts = comm.parts;
  if (!parts.launcher) return {};
  if (comm.abort.raised()) return mismatchOf(comm);
  askForCalls(comm);  // while kernels end, or wait for those of another call
  const std::uint16_t traced = comm.progress.traced->number;
  {
    const trace::Span span(trace::Kind::Wait, traced, "kernels that run", trace::Takes::Long);
    TRY(parts.launcher->drain(&comm.abort, comm.options.timeout));
  }
  ASSIGN(const gpu::ContextGuard context, parts.device->device->enter());
  // Who has left took all it was to take before it did, or takes no more.
  const auto hasLeft = [&comm](int rank) {
    return comm.parts.bootstrap->hasLeft(rank) || comm.revokedPeers->contains(rank);
  };
  // What relatives go on using stays, whoever writes to it.
  const bool relatives = comm.membership->family && comm.membership->family->hasOthers(comm);
  const ChannelSet::Extent extent = relatives ? ChannelSet::Extent::Own : ChannelSet::Extent::All;
  ASSIGN(const bool consumed, parts.channels->allConsumed(hasLeft, extent));
  // Nothing more is taken: what lies in the slots' memory may still be written to, as after any failure.
  if (consumed && comm.lostPeer->heard()) return settleCalls(comm);
  std::optional<PeerWait> waiting;
  const trace::Span span(trace::Kind::Wait, traced, "peers that have yet to take what was sent", trace::Takes::Long);
  if (!consumed) waiting.emplace(comm);
  TRY(parts.channels->awaitConsumed(comm.abort, Deadline::in(comm.options.timeout), hasLeft, extent));
  return settleCalls(comm);
}

}  // namespace

Status flushComm(ncclComm& comm) {
  const Status status = flush(comm);
  // This thread may have met on a connection what has come of it, or nothing.
  if (!status.ok()) restoreLastError(comm.abort.text());
  return status;
}

}  // namespace tutti::comm
