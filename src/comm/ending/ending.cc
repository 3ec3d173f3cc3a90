#include "comm/ending/ending.h"

#include <fmt/format.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads/shortage.h"
#include "bootstrap/bootstrap.h"
#include "comm/ending/call_watch.h"
#include "comm/ending/deferred_free.h"
#include "comm/ending/flush.h"
#include "comm/ending/leave_family.h"
#include "comm/ending/own_account.h"
#include "comm/ending/parting.h"
#include "comm/ending/watching.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/graph_refs.h"
#include "comm/launch/launch.h"
#include "comm/network/relays.h"
#include "comm/state/background.h"
#include "comm/state/births.h"
#include "comm/state/call_gate.h"
#include "comm/state/communicator.h"
#include "comm/state/exit_delivery.h"
#include "comm/state/family.h"
#include "comm/state/lost_peer.h"
#include "comm/state/membership.h"
#include "comm/state/revocation.h"
#include "gpu/context.h"
#include "ras/registry.h"
#include "trace/comm_counts.h"
#include "trace/points.h"

namespace tutti::comm {

namespace {

std::shared_ptr<BackgroundTask> taskOf(ncclComm& comm) {
  const std::lock_guard lock(comm.progress.mutex);
  return comm.progress.task;
}

/// Memory that kernels may still touch, or that a failed device does not take back, is given up. Whether the
/// communicator itself has to stay, too: graphs call its group of tasks, which refers to it.
bool giveUp(ncclComm& comm, std::string_view why) {
  ExitDelivery::instance().remove(comm);
  warn("{}: {}; their memory stays allocated until the process ends", describeComm(comm), why);
  if (comm.membership->family) comm.membership->family->forget(comm);
  comm.parts.leaveTuner();
  const bool called = comm.graphs->any();
  if (!called) comm.parts.stopProgress();
  comm.parts.relays.reset();
  auto* leaked = new CommParts(std::move(comm.parts));
  leaked->bootstrap.reset();
  return called;
}

/// After an abort kernels leave by themselves; before anything is freed they must have. Says why if they have not.
std::string whatKernelsStillDo(ncclComm& comm) {
  if (!comm.parts.launcher) return {};
  Launcher& launcher = *comm.parts.launcher;
  const Deadline deadline = Deadline::in(kLeaveBound);
  CUresult state = launcher.query();
  for (; state == CUDA_ERROR_NOT_READY && !deadline.expired(); state = launcher.query()) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (state == CUDA_SUCCESS) return {};
  if (state == CUDA_ERROR_NOT_READY) {
    return fmt::format("kernels did not stop within {} s after the abort", kLeaveBound.count() / 1000);
  }
  return fmt::format("the device of the kernels has failed ({})",
                     gpu::describeCu(comm.parts.device->device->driver(), state));
}

/// With what this rank has done, so that its peers know whether they wait for it in vain.
void sayGoodbye(const ncclComm& comm) {
  if (!comm.parts.bootstrap) return;
  if (!comm.parts.launcher) return comm.parts.bootstrap->leave();
  RankAccount account = accountWithCalls(comm);
  account.closes = closesInPeace(comm);
  comm.parts.bootstrap->leave(encodeAccount(account));
}

/// What graphs keep of a communicator that has ended: all of it.
struct Estate {
  ncclComm* comm = nullptr;
  ~Estate() {
    if (comm == nullptr) return;
    // Graphs may have been replayed since ncclCommDestroy.
    const bool others = outlivedByFamily(*comm);
    // What is this one's alone nobody else sends on.
    if (!others || comm->parts.drivesAlone()) ExitDelivery::await(*comm, Deadline::in(ExitDelivery::kBound));
    delete comm;
  }
};

/// Frees it, or leaves it to the graphs that contain its operations. Without host memory for that, it stays with them
/// for good.
void freeOrBequeath(ncclComm* comm) {
  std::shared_ptr<Estate> estate;
  ignoringShortage([&] {
    estate = std::make_shared<Estate>();
    ExitDelivery::instance().add(*comm);
    estate->comm = comm;
  });
  if (estate == nullptr || estate->comm == nullptr) {
    if (!comm->graphs->any()) delete comm;
    return;
  }
  if (!comm->graphs->deferFree(estate)) return;
  info(kDestroy,
       "comm {} : graphs with its operations are left; what they use stays allocated until they are destroyed",
       fmt::ptr(comm));
}

}  // namespace

Status awaitKernels(ncclComm& comm) {
  const std::string why = whatKernelsStillDo(comm);
  return why.empty() ? Status() : fail(ncclUnhandledCudaError, "{}: {}", describeComm(comm), why);
}

void releaseComm(ncclComm* comm, std::string_view how) {
  const CommIdentity identity = comm->identity;
  const std::uint16_t traced = comm->progress.traced->number;
  trace::markText(trace::Kind::Ending, traced, how);
  stopWatch(*comm);
  const bool lastOfFamily = leaveFamily(*comm);
  const bool inPeace = closesInPeace(*comm);
  bool stays = false;
  if (comm->abort.raised()) {
    if (const std::string why = whatKernelsStillDo(*comm); !why.empty()) stays = giveUp(*comm, why);
  }
  // Said before connections close and memory goes: what peers see of them then is no failure, and they look no more.
  if (inPeace) beginParting(*comm, lastOfFamily);
  ignoringShortage([comm] { sayGoodbye(*comm); });
  if (inPeace) {
    const trace::Span span(trace::Kind::Wait, traced, "peers to part", trace::Takes::Long);
    awaitParted(*comm, lastOfFamily);
  }
  // Before any other part is freed, and at once even where graphs keep the rest.
  comm->parts.leaveTuner();
  comm->listing.reset();
  comm->magicFirst = 0;
  comm->magicLast = 0;
  const std::string address = fmt::format("{}", fmt::ptr(comm));
  // Those who send through this rank may leave later than it.
  std::unique_ptr<RankRelays> relays = std::move(comm->parts.relays);
  if (comm->abort.raised() || comm->lostPeer->heard()) relays.reset();
  if (!stays) freeWhenOthersRest([comm] { freeOrBequeath(comm); });
  if (relays) relays->leave();
  freeAbandoned();
  info(kDestroy, "comm {} rank {} nranks {} cudaDev {} busId {:x} - {} COMPLETE", address, identity.rank,
       identity.nRanks, identity.cudaDevice, identity.busId, how);
}

void noteJoined(ncclComm& comm) {
  {
    const std::lock_guard lock(comm.progress.mutex);
    comm.progress.joined = comm.parts.bootstrap.get();
  }
  // Whoever raised it before that found nobody to tell by.
  if (comm.abort.raised()) comm.parts.bootstrap->announceAbort(comm.abort.status());
}

namespace {

/// Before anything is waited for: what holds this rank up must not hold up its peers, whose bootstrap sees it alive.
/// The abort is raised: an init that joins from now on finds it so.
void tellPeers(ncclComm& comm) {
  if (bootstrap::Bootstrap* const bootstrap = joinedBootstrap(comm)) bootstrap->announceAbort(comm.abort.status());
}

/// Of a communicator that was revoked peers know all. Who waits on its bootstrap here leaves; then it can say goodbye.
void wakeQuietly(ncclComm& comm) {
  if (bootstrap::Bootstrap* const bootstrap = joinedBootstrap(comm)) bootstrap->abort(comm.abort.status());
}
void quietAgain(ncclComm& comm) {
  if (bootstrap::Bootstrap* const bootstrap = joinedBootstrap(comm)) bootstrap->resume();
}

/// Whether nobody is inside any more, on a thread of the application's or of ours.
bool callsLeave(ncclComm& comm, Deadline deadline) {
  if (const auto task = taskOf(comm)) {
    if (!task->endsBy(deadline)) return false;
    task->wait().ignore();
  }
  return comm.gate->awaitEmpty(deadline);
}

/// Frees a communicator whose abort is raised and whose end the caller has claimed.
Status finishAbort(ncclComm* comm, std::string_view how = "Abort") {
  comm->births->stop(Births::Tie::Life, Status(ncclInvalidUsage),
                     fmt::format("the communicator that this one was to be made from has ended: {}", kAbortedHere));
  const bool revoked = comm->progress.revocation->begun();
  revoked ? wakeQuietly(*comm) : tellPeers(*comm);
  if (!callsLeave(*comm, Deadline::in(kLeaveBound))) {
    warn(
        "{}: a call on another thread did not return within {} s after ncclComm{}; the communicator's memory stays "
        "allocated",
        describeComm(*comm), kLeaveBound.count() / 1000, how);
    return {};
  }
  if (revoked) quietAgain(*comm);
  releaseComm(comm, how);
  return {};
}

/// The same where nobody need have raised it.
Status abortClaimed(ncclComm* comm) {
  comm->abort.raise(Status(ncclInvalidUsage), kAbortedHere);
  return finishAbort(comm);
}

void logAbort(const ncclComm& comm) {
  info(kDestroy, "comm {} rank {} nranks {} cudaDev {} busId {:x} - Abort START", fmt::ptr(&comm), comm.identity.rank,
       comm.identity.nRanks, comm.identity.cudaDevice, comm.identity.busId);
}

}  // namespace

Status abortAndRelease(ncclComm* comm) {
  logAbort(*comm);
  // Claimed before anybody is woken: a call that fails because of this must not free the communicator as well.
  if (comm->progress.ending.exchange(true)) return {};
  return abortClaimed(comm);
}

Status destroyAndRelease(ncclComm* comm) {
  Status flushed;
  {
    // As long as this is inside, another thread that aborts the communicator waits before it frees it.
    const CallGate::Pass pass(*comm->gate);
    if (const auto task = taskOf(*comm)) task->wait().ignore();
    flushed = flushComm(*comm);
    if (comm->progress.ending.exchange(true)) return flushed;
  }
  if (comm->progress.revocation->begun()) return finishAbort(comm, "Destroy");
  if (comm->abort.raised() || !flushed.ok()) {
    if (flushed.ok()) flushed = mismatchOf(*comm);
    logAbort(*comm);
    if (!comm->abort.raised()) failComm(*comm, flushed);
    abortClaimed(comm).ignore();
    return flushed;
  }
  releaseComm(comm, "Destroy");
  return {};
}

void endFailedInit(ncclComm* comm) {
  finishAbort(comm).ignore();
}

}  // namespace tutti::comm
