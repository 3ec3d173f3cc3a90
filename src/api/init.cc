// Making communicators.
#include "api/boundary.h"
#include "comm/inits.h"
#include "comm/library.h"

using namespace tutti;

namespace {

/// What all ways to make a communicator share: start, check the place for the handle, hand over.
Result<comm::Progress> start(const comm::InitRequest& request) {
  const Status ready = comm::startLibrary();
  if (!ready.ok()) {
    if (request.comm != nullptr) *request.comm = nullptr;
    return ready;
  }
  TRY(api::checkPointer(request.comm, request.function.substr(4), "comm"));
  return comm::initRank(request);
}

ncclResult_t byOneId(std::string_view function, comm::InitRequest request) {
  request.function = function;
  return api::apiInGroup(function, [&] { return start(request); });
}

}  // namespace

TUTTI_API(ncclResult_t, CommInitRank, (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank)) {
  return byOneId("ncclCommInitRank",
                 {.comm = comm, .nRanks = nranks, .rank = rank, .ids = {&commId, 1}, .plain = true});
}

TUTTI_API(ncclResult_t, CommInitRankConfig,
          (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config)) {
  return byOneId("ncclCommInitRankConfig",
                 {.comm = comm, .nRanks = nranks, .rank = rank, .ids = {&commId, 1}, .config = config});
}

TUTTI_API(ncclResult_t, CommInitRankScalable,
          (ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds, ncclConfig_t* config)) {
  return api::apiInGroup("ncclCommInitRankScalable", [&]() -> Result<comm::Progress> {
    if (nId <= 0 || nId > nranks) {
      return fail(ncclInvalidArgument, "CommInitRankScalable : {} unique ids for {} ranks: pass 1 to {} of them", nId,
                  nranks, nranks);
    }
    TRY(api::checkPointer(commIds, "CommInitRankScalable", "commIds"));
    return start({.comm = newcomm,
                  .nRanks = nranks,
                  .rank = myrank,
                  .ids = {commIds, static_cast<std::size_t>(nId)},
                  .config = config,
                  .function = "ncclCommInitRankScalable",
                  .plain = false});
  });
}

TUTTI_API(ncclResult_t, CommInitAll, (ncclComm_t * comms, int ndev, const int* devlist)) {
  return api::apiInGroup("ncclCommInitAll", [&]() -> Status {
    TRY(comm::startLibrary());
    TRY(api::checkPointer(comms, "CommInitAll", "comms"));
    if (ndev < 0) return fail(ncclInvalidArgument, "CommInitAll : invalid device count requested : {}", ndev);
    return comm::initAll(comms, ndev, devlist);
  });
}
