#include "comm/inits.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/hash.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/ending/deferred_free.h"
#include "comm/ending/ending.h"
#include "comm/enqueue/group.h"
#include "comm/library.h"
#include "comm/making.h"
#include "comm/settings/comm_settings.h"
#include "comm/settings/current_settings.h"
#include "comm/settings/version.h"
#include "comm/state/communicator.h"
#include "gpu/context.h"
#include "gpu/driver.h"

namespace tutti::comm {

namespace {

Status checkRequest(const InitRequest& request) {
  if (request.nRanks < 1 || request.rank < 0 || request.rank >= request.nRanks) {
    return fail(ncclInvalidArgument, "Invalid rank requested : {}/{} (ranks are 0..nranks-1)", request.rank,
                request.nRanks);
  }
  if (request.ids.empty() || request.ids.size() > static_cast<std::size_t>(request.nRanks)) {
    return fail(ncclInvalidArgument, "Invalid number of unique ids : {} for {} ranks (1..nranks)", request.ids.size(),
                request.nRanks);
  }
  return {};
}

std::uint64_t hashOf(const ncclUniqueId& id) {
  return hashBytes(std::as_bytes(std::span(id.internal)));
}

Result<Progress> initOnDevice(const InitRequest& request, const gpu::Driver& driver, int device) {
  TRY(checkRequest(request));
  auto settings = std::make_shared<const CommSettings>(currentCommSettings());
  ASSIGN(Config config, configOf(request.config, nullptr, *settings));
  ASSIGN(const gpu::CudaDeviceFacts facts, gpu::readDeviceFacts(driver, device));
  CommIdentity identity{request.rank,
                        request.nRanks,
                        device,
                        facts.nvmlIndex,
                        facts.busId,
                        hashOf(request.ids.front()),
                        std::string(request.function),
                        {}};
  return startInit(makeComm(std::move(identity), std::move(config), std::move(settings)), request.comm,
                   joinByIds({request.ids.begin(), request.ids.end()}), request.plain);
}

Status checkDevices(const gpu::Driver& driver, int nDevices, const int* devices) {
  ASSIGN(const int available, gpu::deviceCount(driver));
  if (nDevices < 0) return fail(ncclInvalidArgument, "Invalid device count requested : {}", nDevices);
  std::vector<bool> used(static_cast<std::size_t>(available));
  for (int i = 0; i < nDevices; ++i) {
    const int device = devices != nullptr ? devices[i] : i;
    if (device < 0 || device >= available) {
      return fail(ncclInvalidArgument, "Invalid device requested : {} (this process sees {} devices)", device,
                  available);
    }
    if (used[static_cast<std::size_t>(device)] && !currentCommSettings().allowRanksOfOneDevice) {
      return fail(ncclInvalidUsage,
                  "Duplicate device {} in the list of ncclCommInitAll, and NCCL_MULTI_RANK_GPU_ENABLE "
                  "is 0",
                  device);
    }
    used[static_cast<std::size_t>(device)] = true;
  }
  return {};
}

/// After a failed group the application has no use for the objects: it only learns that init failed.
void dropAll(std::vector<ncclComm_t>& comms) {
  for (ncclComm_t comm : comms) {
    if (comm != nullptr) abortAndRelease(comm).ignore();
  }
}

}  // namespace

Result<ncclUniqueId> makeUniqueId() {
  TRY(startLibraryWithoutCuda());
  return bootstrap::createUniqueId(currentCommSettings().bootstrap);
}

Result<Progress> initRank(const InitRequest& request) {
  TRY(startLibrary());
  logVersion(request.rank == 0, versionText());
  ASSIGN(const gpu::Driver* driver, gpu::loadDriver());
  freeAbandoned();
  ASSIGN(const int device, gpu::currentDevice(*driver));
  return initOnDevice(request, *driver, device);
}

Status initAll(ncclComm_t* comms, int nDevices, const int* devices) {
  TRY(startLibrary());
  logVersion(true, versionText());
  ASSIGN(const gpu::Driver* driver, gpu::loadDriver());
  TRY(checkDevices(*driver, nDevices, devices));
  if (nDevices == 0) return {};
  ASSIGN(const ncclUniqueId id, makeUniqueId());
  std::vector<ncclComm_t> made(static_cast<std::size_t>(nDevices));
  groupStart();
  for (int i = 0; i < nDevices; ++i) {
    const InitRequest request{
        &made[static_cast<std::size_t>(i)], nDevices, i, {&id, 1}, nullptr, "ncclCommInitAll", false};
    latchGroupError(initOnDevice(request, *driver, devices != nullptr ? devices[i] : i).status());
  }
  const Status ended = groupEnd().status();
  if (!ended.ok()) {
    dropAll(made);
    return ended;
  }
  std::copy(made.begin(), made.end(), comms);
  return {};
}

}  // namespace tutti::comm
