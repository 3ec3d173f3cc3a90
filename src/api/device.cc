// Host side of the device API. There is no symmetric memory yet, so every rank is alone in its LSA team.
#include "nccl_device.h"

#include "api/boundary.h"
#include "comm/lifecycle.h"

using namespace tutti;

namespace {

/// Refuses structs that did not start from their initializer.
Status checkHeader(unsigned magic, unsigned version, std::string_view label) {
  if (magic != NCCL_API_MAGIC) {
    return fail(ncclInvalidUsage, "{} : the struct was not initialised with its initializer (magic {:#x})", label,
                magic);
  }
  if (version <= NCCL_VERSION_CODE) return {};
  return fail(ncclInvalidUsage, "{} : the caller was compiled for version {}, this library is {}: use a newer library",
              label, version, NCCL_VERSION_CODE);
}

constexpr ncclTeam_t kNoTeam{0, 0, 0};

/// Team functions cannot report a result: an unusable communicator is logged and gives the empty team.
ncclTeam_t teamOf(std::string_view label, ncclComm_t comm, bool alone) {
  ncclTeam_t team = kNoTeam;
  (void)api(label, [&]() -> Status {
    TRY(checkUsable(comm, label));
    team = alone ? ncclTeam_t{1, 0, 1} : ncclTeam_t{commCount(*comm), commUserRank(*comm), 1};
    return {};
  });
  return team;
}

Status pointerOfUnknownWindow(std::string_view label, const void* window, void** outPtr) {
  TRY(checkPointer(outPtr, label, "outPtr"));
  return fail(ncclInvalidArgument, "{} : unknown window {}", label, window);
}

}  // namespace

TUTTI_API(ncclResult_t, CommQueryProperties, (ncclComm_t comm, ncclCommProperties_t* props)) {
  return api("ncclCommQueryProperties", [&]() -> Status {
    TRY(checkUsable(comm, "CommQueryProperties"));
    TRY(checkPointer(props, "CommQueryProperties", "props"));
    TRY(checkHeader(props->magic, props->version, "CommQueryProperties"));
    props->rank = commUserRank(*comm);
    props->nRanks = commCount(*comm);
    props->cudaDev = commCuDevice(*comm);
    props->nvmlDev = -1;
    props->deviceApiSupport = false;
    props->multimemSupport = false;
    if (props->version <= NCCL_VERSION(2, 29, 3)) return {};
    props->ginType = NCCL_GIN_TYPE_NONE;
    props->nLsaTeams = commCount(*comm);
    props->hostRmaSupport = false;
    props->railedGinType = NCCL_GIN_TYPE_NONE;
    return {};
  });
}

TUTTI_API(ncclResult_t, DevCommCreate,
          (ncclComm_t comm, const ncclDevCommRequirements_t* reqs, ncclDevComm_t* outDevComm)) {
  return apiInGroup("ncclDevCommCreate", [&]() -> Status {
    TRY(checkUsable(comm, "DevCommCreate"));
    TRY(checkPointer(reqs, "DevCommCreate", "reqs"));
    TRY(checkPointer(outDevComm, "DevCommCreate", "outDevComm"));
    TRY(checkHeader(reqs->magic, reqs->version, "DevCommCreate"));
    return notYet("ncclDevCommCreate");
  });
}

TUTTI_API(ncclResult_t, DevCommDestroy, (ncclComm_t comm, const ncclDevComm_t* devComm)) {
  return apiInGroup("ncclDevCommDestroy", [&]() -> Status {
    TRY(checkComm(comm, "DevCommDestroy"));
    TRY(checkPointer(devComm, "DevCommDestroy", "devComm"));
    return notYet("ncclDevCommDestroy");
  });
}

TUTTI_API(ncclTeam_t, TeamWorld, (ncclComm_t comm)) { return teamOf("TeamWorld", comm, false); }
TUTTI_API(ncclTeam_t, TeamLsa, (ncclComm_t comm)) { return teamOf("TeamLsa", comm, true); }
TUTTI_API(ncclTeam_t, TeamRail, (ncclComm_t comm)) { return teamOf("TeamRail", comm, false); }

TUTTI_API(int, TeamRankToWorld, (ncclComm_t comm, ncclTeam_t team, int rank)) {
  const ncclTeam_t world = teamOf("TeamRankToWorld", comm, false);
  return world.nRanks == 0 ? -1 : world.rank + (rank - team.rank) * team.stride;
}

TUTTI_API(int, TeamRankToLsa, (ncclComm_t comm, ncclTeam_t team, int rank)) {
  const ncclTeam_t lsa = teamOf("TeamRankToLsa", comm, true);
  return lsa.nRanks == 0 ? -1 : lsa.rank + (rank - team.rank) * team.stride;
}

TUTTI_API(ncclResult_t, LsaBarrierCreateRequirement,
          (ncclTeam_t, int, ncclLsaBarrierHandle_t* outHandle, ncclDevResourceRequirements_t* outReq)) {
  return api("ncclLsaBarrierCreateRequirement", [&]() -> Status {
    TRY(checkPointer(outHandle, "LsaBarrierCreateRequirement", "outHandle"));
    TRY(checkPointer(outReq, "LsaBarrierCreateRequirement", "outReq"));
    return notYet("ncclLsaBarrierCreateRequirement");
  });
}

TUTTI_API(ncclResult_t, GinBarrierCreateRequirement,
          (ncclComm_t comm, ncclTeam_t, int, ncclGinBarrierHandle_t* outHandle,
           ncclDevResourceRequirements_t* outReq)) {
  return api("ncclGinBarrierCreateRequirement", [&]() -> Status {
    TRY(checkComm(comm, "GinBarrierCreateRequirement"));
    TRY(checkPointer(outHandle, "GinBarrierCreateRequirement", "outHandle"));
    TRY(checkPointer(outReq, "GinBarrierCreateRequirement", "outReq"));
    return notYet("ncclGinBarrierCreateRequirement");
  });
}

TUTTI_API(int, LLA2ACalcSlots, (int maxElts, int maxEltSize)) { return maxElts * ((maxEltSize + 7) / 8); }

TUTTI_API(ncclResult_t, LLA2ACreateRequirement,
          (int, int, ncclLLA2AHandle_t* outHandle, ncclDevResourceRequirements_t* outReq)) {
  return api("ncclLLA2ACreateRequirement", [&]() -> Status {
    TRY(checkPointer(outHandle, "LLA2ACreateRequirement", "outHandle"));
    TRY(checkPointer(outReq, "LLA2ACreateRequirement", "outReq"));
    return notYet("ncclLLA2ACreateRequirement");
  });
}

TUTTI_API(ncclResult_t, GinOutboxCreateRequirement,
          (int, int, ncclGinOutboxHandle_t* outHandle, ncclDevResourceRequirements_t* outReq)) {
  return api("ncclGinOutboxCreateRequirement", [&]() -> Status {
    TRY(checkPointer(outHandle, "GinOutboxCreateRequirement", "outHandle"));
    TRY(checkPointer(outReq, "GinOutboxCreateRequirement", "outReq"));
    return notYet("ncclGinOutboxCreateRequirement");
  });
}

TUTTI_API(ncclResult_t, GinInboxA2ACreateRequirement,
          (ncclTeam_t, int, int, ncclGinInboxA2AHandle_t* outHandle, ncclDevResourceRequirements_t* outReq)) {
  return api("ncclGinInboxA2ACreateRequirement", [&]() -> Status {
    TRY(checkPointer(outHandle, "GinInboxA2ACreateRequirement", "outHandle"));
    TRY(checkPointer(outReq, "GinInboxA2ACreateRequirement", "outReq"));
    return notYet("ncclGinInboxA2ACreateRequirement");
  });
}

TUTTI_API(ncclResult_t, GetMultimemDevicePointer,
          (ncclWindow_t window, size_t, ncclMultimemHandle_t, void** outPtr)) {
  return api("ncclGetMultimemDevicePointer",
             [&] { return pointerOfUnknownWindow("GetMultimemDevicePointer", window, outPtr); });
}

TUTTI_API(ncclResult_t, GetLsaMultimemDevicePointer, (ncclWindow_t window, size_t, void** outPtr)) {
  return api("ncclGetLsaMultimemDevicePointer",
             [&] { return pointerOfUnknownWindow("GetLsaMultimemDevicePointer", window, outPtr); });
}

TUTTI_API(ncclResult_t, GetLsaDevicePointer, (ncclWindow_t window, size_t, int, void** outPtr)) {
  return api("ncclGetLsaDevicePointer",
             [&] { return pointerOfUnknownWindow("GetLsaDevicePointer", window, outPtr); });
}

TUTTI_API(ncclResult_t, GetPeerDevicePointer, (ncclWindow_t window, size_t, int, void** outPtr)) {
  return api("ncclGetPeerDevicePointer",
             [&] { return pointerOfUnknownWindow("GetPeerDevicePointer", window, outPtr); });
}
