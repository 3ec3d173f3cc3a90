#include "comm/ending/revoke.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/ending/ending.h"
#include "comm/launch/launch.h"
#include "comm/state/background.h"
#include "comm/state/call_gate.h"
#include "comm/state/communicator.h"
#include "comm/state/family.h"
#include "comm/state/membership.h"
#include "comm/state/revocation.h"

namespace tutti::comm {

namespace {

/// What is under way may be about to end: the revoked rank may have done its part of it.
constexpr milliseconds kRevokeGrace{200};

/// What of the communicator's operations has not ended, in words; empty once nothing has not.
std::string underWay(ncclComm& comm, const BackgroundTask* before) {
  if (!comm.gate->alone() || (before != nullptr && !before->done())) return "a call on another thread";
  const CommParts& parts = comm.parts;  // stays as it is now: no init is under way
  if (parts.launcher && parts.launcher->mayBeBusy() && parts.launcher->query() == CUDA_ERROR_NOT_READY) {
    return fmt::format("a kernel ({}), or work of the application before it on its stream,",
                       parts.launcher->lastLaunch());
  }
  if (!parts.progressRests()) return "the progress engine";
  return {};
}

/// Also ends when somebody frees the communicator, who waits for this thread.
Status awaitRest(ncclComm& comm, const BackgroundTask* before) {
  const Deadline deadline = Deadline::in(kLeaveBound);
  std::string left = underWay(comm, before);
  while (!left.empty() && !comm.progress.ending.load()) {
    if (deadline.expired()) {
      return fail(ncclSystemError,
                  "{}: {} did not end within {} s after ncclCommRevoke; buffers of its operations are still in use",
                  describeComm(comm), left, kLeaveBound.count() / 1000);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    left = underWay(comm, before);
  }
  return {};
}

void logPhase(const ncclComm& comm, std::string_view what) {
  info(kDestroy, "comm {} rank {} nranks {} cudaDev {} busId {:x} - Revoke {}", fmt::ptr(&comm), comm.identity.rank,
       comm.identity.nRanks, comm.identity.cudaDevice, comm.identity.busId, what);
}

}  // namespace

void raiseRevoke(ncclComm& comm) {
  logPhase(comm, "START");
  // Peers first: what they see of this rank's connections from now on is no failure.
  if (bootstrap::Bootstrap* const bootstrap = joinedBootstrap(comm)) bootstrap->announceState(RevokedPeers::notice());
  comm.abort.raise(Status(ncclInvalidUsage), kRevokedHere);
}

Status awaitRevoked(ncclComm& comm, const BackgroundTask* before) {
  const Status rests = awaitRest(comm, before);
  if (rests.ok() && !comm.progress.ending.load()) {
    // Calls of the network may be under way, also into the application's memory, which is its own again.
    comm.parts.leaveCollNet();
    // What a relative's failure has this rank say must not be said of the time that begins here.
    if (comm.membership->family) comm.membership->family->awaitSpread();
    if (bootstrap::Bootstrap* const bootstrap = joinedBootstrap(comm)) bootstrap->resume();
  }
  comm.progress.revocation->finish(rests);
  logPhase(comm, fmt::format("COMPLETE, result {}", static_cast<int>(rests.code())));
  return rests;
}

void heedRevokedPeers(ncclComm& comm, SteadyClock::time_point now, bool kernelsRun) {
  const char* const connecting = comm.progress.connecting.load();
  const auto revoker = comm.revokedPeers->hindering(now, kernelsRun || connecting != nullptr, kRevokeGrace);
  if (!revoker) return;
  const std::string what = kernelsRun ? comm.parts.launcher->lastLaunch() : fmt::format("a call of {}", connecting);
  const Status why = fail(ncclRemoteError,
                          "{} has revoked the communicator with ncclCommRevoke, but {} of {} waits for its peers. Call "
                          "ncclCommRevoke, or ncclCommAbort, here as well",
                          comm.parts.bootstrap->describe(*revoker), what, describeComm(comm));
  // The others have heard it from the rank itself, and need not care as long as they wait for nobody.
  comm.abort.raise(why, lastErrorText(), lastErrorText());
}

}  // namespace tutti::comm
