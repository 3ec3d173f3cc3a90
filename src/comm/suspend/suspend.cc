#include "comm/suspend/suspend.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/connect/channels.h"
#include "comm/connect/shared_connections.h"
#include "comm/ending/deferred_free.h"
#include "comm/ending/ending.h"
#include "comm/ending/flush.h"
#include "comm/ending/parting.h"
#include "comm/ending/watching.h"
#include "comm/init/channels/connect_stage.h"
#include "comm/init/transports/transport_stage.h"
#include "comm/launch/device_pool.h"
#include "comm/network/relays.h"
#include "comm/state/call_gate.h"
#include "comm/state/communicator.h"
#include "comm/state/family.h"
#include "comm/state/membership.h"
#include "comm/state/residence.h"
#include "gpu/context.h"
#include "gpu/memory_ledger.h"
#include "transport/common/transport.h"

namespace tutti::comm {

namespace {

/// How long a relay of this process may take to notice that nobody sends through it: a few microseconds, in fact.
constexpr milliseconds kRelayBound{10'000};

std::size_t releasableBytes(const ncclComm& comm) {
  return deviceMemory(comm, gpu::MemoryClass::Releasable);
}

void logPhase(const ncclComm& comm, std::string_view what) {
  info(kInit, "comm {} rank {} nranks {} cudaDev {} busId {:x} - {}", fmt::ptr(&comm), comm.identity.rank,
       comm.identity.nRanks, comm.identity.cudaDevice, comm.identity.busId, what);
}

/// Others have closed what they sent over through this rank: until it is gone here, the network is in use.
Status awaitSenders(const ncclComm& comm) {
  if (comm.parts.relays == nullptr) return {};
  const Deadline deadline = Deadline::in(kRelayBound);
  while (comm.parts.relays->serves()) {
    if (comm.abort.raised()) return comm.abort.status();
    if (deadline.expired()) {
      return fail(ncclInternalError, "{}: ranks that have suspended still send through this one", describeComm(comm));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return {};
}

/// Members that have ended hold the connections until they are freed, which waits for kernels of other communicators;
/// and graphs may just have left one behind.
Status awaitEnds(const ncclComm& comm, const Family& family) {
  const Deadline deadline = Deadline::in(comm.options.timeout);
  while (!family.isAlone(comm)) {
    if (comm.abort.raised()) return comm.abort.status();
    if (deadline.expired()) {
      return fail(ncclInvalidUsage,
                  "{}: communicators that shared its connections have ended, but kernels of other communicators have "
                  "run for {:.0f} s, and nothing can be freed meanwhile. Let them end before ncclCommSuspend",
                  describeComm(comm), std::chrono::duration<double>(comm.options.timeout).count());
    }
    freeAbandoned();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

/// What relatives that are gone have sent is taken, and they are freed.
Status settleFamily(const ncclComm& comm) {
  const auto& family = comm.membership->family;
  if (!family) return {};
  TRY(family->connections()->awaitTaken(*comm.parts.device->device, describeComm(comm), comm.options.timeout,
                                        comm.abort));
  return awaitEnds(comm, *family);
}

/// In steps, for a connection is at its end only when neither rank uses what the other owns.
Status closeConnections(ncclComm& comm) {
  CommParts& parts = comm.parts;
  const bool family = comm.membership->family != nullptr;
  beginParting(comm, family);
  awaitParted(comm, family);
  TRY(parts.bootstrap->barrier());
  TRY(parts.channels->detach());
  TRY(parts.bootstrap->barrier());
  parts.channels->close(device::Direction::Send);
  // A sender that a relay stands in for is gone before its receiver, which the network would report as lost.
  TRY(parts.bootstrap->barrier());
  TRY(awaitSenders(comm));
  TRY(parts.bootstrap->barrier());
  parts.channels->close(device::Direction::Recv);
  parts.transports.clear();  // with the slots that their ends have shared
  return parts.bootstrap->barrier();
}

/// What this rank has sent is consumed; then all have said so.
Status comeToRest(ncclComm& comm) {
  const bootstrap::Bootstrap::Attendance here(*comm.parts.bootstrap, "ncclCommSuspend", comm.options.reportAfter);
  TRY(flushComm(comm));
  TRY(comm.abort.status());
  ASSIGN(const gpu::ContextGuard context, comm.parts.device->device->enter());
  TRY(settleFamily(comm));
  return comm.parts.bootstrap->barrier();
}

Status awaitResume(const ncclComm& comm) {
  const bootstrap::Bootstrap::Attendance here(*comm.parts.bootstrap, "ncclCommResume", comm.options.reportAfter);
  return comm.parts.bootstrap->barrier();
}

Status suspend(ncclComm& comm) {
  TRY(comeToRest(comm));
  ASSIGN(const gpu::ContextGuard context, comm.parts.device->device->enter());
  const std::size_t before = releasableBytes(comm);
  endWatch(comm);
  const Status closed = closeConnections(comm);
  const Status watched = beginWatch(comm);
  TRY(closed);
  TRY(watched);
  comm.residence->setReleased(before - releasableBytes(comm));
  return {};
}

Status resume(ncclComm& comm) {
  ASSIGN(const gpu::ContextGuard context, comm.parts.device->device->enter());
  TRY(awaitResume(comm));
  makeTransports(comm);
  TRY(reconnectAll(comm));
  comm.residence->setReleased(0);
  return comm.parts.bootstrap->barrier();
}

/// Ranks that have come to different ends cannot go on.
Status change(ncclComm& comm, Status (*body)(ncclComm&), std::string_view what) {
  const CallGate::Pass pass(*comm.gate);
  logPhase(comm, fmt::format("{} START", what));
  const Status status = body(comm);
  if (!status.ok()) {
    failComm(comm, status);
    return status;
  }
  comm.residence->finish();
  return {};
}

}  // namespace

Status suspendComm(ncclComm& comm) {
  TRY(change(comm, suspend, "Suspend"));
  logPhase(comm, fmt::format("Suspend COMPLETE, {} bytes of device memory released", comm.residence->released()));
  return {};
}

Status resumeComm(ncclComm& comm) {
  TRY(change(comm, resume, "Resume"));
  logPhase(comm, fmt::format("Resume COMPLETE, {} bytes of device memory in use", releasableBytes(comm)));
  return {};
}

}  // namespace tutti::comm
