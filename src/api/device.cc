// Host side of the device API. There is no symmetric memory yet, so every rank is alone in its LSA team.
#include "nccl_device.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "api/boundary.h"
#include "comm/lifecycle.h"

using namespace tutti;

namespace {

/// Refuses structs that did not start from their initializer.
Status checkMagic(unsigned magic, std::string_view label) {
  if (magic == NCCL_API_MAGIC) return {};
  return fail(ncclInvalidUsage, "{} : the struct was not initialised with its initializer (magic {:#x})", label, magic);
}

/// The same, and those of callers that may ask for what this library does not know.
Status checkHeader(unsigned magic, unsigned version, std::string_view label) {
  TRY(checkMagic(magic, label));
  if (version <= NCCL_VERSION_CODE) return {};
  return fail(ncclInvalidUsage, "{} : the caller was compiled for version {}, this library is {}: use a newer library",
              label, version, NCCL_VERSION_CODE);
}

constexpr ncclTeam_t kNoTeam{0, 0, 0};

/// Team functions cannot report a result: an unusable communicator is logged and gives the empty team.
/// How many bytes of its properties the caller's struct has. Its size tells, but for the first layout, which said more
/// than it was filled with.
std::size_t knownBytes(const ncclCommProperties_t& props) {
  if (props.version <= NCCL_VERSION(2, 29, 3)) return offsetof(ncclCommProperties_t, ginType);
  return std::min(props.size, sizeof(ncclCommProperties_t));
}

ncclTeam_t teamOf(std::string_view label, ncclComm_t comm, bool alone) {
  ncclTeam_t team = kNoTeam;
  (void)api::ask(label, [&]() -> Status {
    TRY(api::checkUsable(comm, label));
    team = alone ? ncclTeam_t{1, 0, 1} : ncclTeam_t{comm::commCount(*comm), comm::commUserRank(*comm), 1};
    return {};
  });
  return team;
}

/// "DevCommCreate" of "ncclDevCommCreate", as texts about arguments call it.
std::string_view labelOf(std::string_view function) {
  return function.substr(4);
}

/// There is no window yet, so whatever the caller passes is none.
ncclResult_t pointerOfUnknownWindow(std::string_view function, const void* window, void** outPtr) {
  return api::ask(function, [&]() -> Status {
    TRY(api::checkPointer(outPtr, labelOf(function), "outPtr"));
    return fail(ncclInvalidArgument, "{} : unknown window {}", labelOf(function), window);
  });
}

/// The same of endpoints.
ncclResult_t endpointOfUnknownWindow(std::string_view function, const void* window, const ncclCftLeId* leId,
                                     const std::size_t* leOffset) {
  return api::ask(function, [&]() -> Status {
    TRY(api::checkPointer(leId, labelOf(function), "leId"));
    TRY(api::checkPointer(leOffset, labelOf(function), "leOffset"));
    return fail(ncclInvalidArgument, "{} : unknown window {}", labelOf(function), window);
  });
}

/// What resources of the device API need; there are none yet.
Status requirementNotYet(std::string_view function, const void* outHandle, const void* outReq) {
  TRY(api::checkPointer(outHandle, labelOf(function), "outHandle"));
  TRY(api::checkPointer(outReq, labelOf(function), "outReq"));
  return api::notYet(function);
}

}  // namespace

TUTTI_API(ncclResult_t, CommQueryProperties, (ncclComm_t comm, ncclCommProperties_t* props)) {
  return api::ask("ncclCommQueryProperties", [&]() -> Status {
    TRY(api::checkUsable(comm, "CommQueryProperties"));
    TRY(api::checkPointer(props, "CommQueryProperties", "props"));
    // Of a caller that is newer than this library, what is not known here stays as its initializer made it.
    TRY(checkMagic(props->magic, "CommQueryProperties"));
    ncclCommProperties_t known = NCCL_COMM_PROPERTIES_INITIALIZER;
    known.rank = comm::commUserRank(*comm);
    known.nRanks = comm::commCount(*comm);
    known.cudaDev = comm::commCuDevice(*comm);
    known.nLsaTeams = comm::commCount(*comm);
    known.commHash = comm::commHash(*comm);
    known.devCommRuntimeVersionSize = sizeof(ncclDevComm_t);
    constexpr std::size_t kFirst = offsetof(ncclCommProperties_t, rank);
    const std::size_t bytes = knownBytes(*props);
    if (bytes <= kFirst) return fail(ncclInvalidUsage, "CommQueryProperties : a struct of {} bytes", props->size);
    std::memcpy(reinterpret_cast<std::byte*>(props) + kFirst, reinterpret_cast<const std::byte*>(&known) + kFirst,
                bytes - kFirst);
    return {};
  });
}

TUTTI_API(ncclResult_t, DevCommCreate,
          (ncclComm_t comm, const ncclDevCommRequirements_t* reqs, ncclDevComm_t* outDevComm)) {
  return api::apiInGroup("ncclDevCommCreate", [&]() -> Status {
    TRY(api::checkUsable(comm, "DevCommCreate"));
    TRY(api::checkPointer(reqs, "DevCommCreate", "reqs"));
    TRY(api::checkPointer(outDevComm, "DevCommCreate", "outDevComm"));
    TRY(checkHeader(reqs->magic, reqs->version, "DevCommCreate"));
    return api::notYet("ncclDevCommCreate");
  });
}

TUTTI_API(ncclResult_t, DevCommDestroy, (ncclComm_t comm, const ncclDevComm_t* devComm)) {
  return api::apiInGroup("ncclDevCommDestroy", [&]() -> Status {
    TRY(comm::checkComm(comm, "DevCommDestroy"));
    TRY(api::checkPointer(devComm, "DevCommDestroy", "devComm"));
    return api::notYet("ncclDevCommDestroy");
  });
}

TUTTI_API(ncclTeam_t, TeamWorld, (ncclComm_t comm)) {
  return teamOf("TeamWorld", comm, false);
}
TUTTI_API(ncclTeam_t, TeamLsa, (ncclComm_t comm)) {
  return teamOf("TeamLsa", comm, true);
}
TUTTI_API(ncclTeam_t, TeamCft, (ncclComm_t comm, ncclCftTeamMode_t mode)) {
  const int number = static_cast<int>(mode);
  if (number >= NCCL_CFT_TEAM_FLAT && number <= NCCL_CFT_TEAM_HIER_LSA) return teamOf("TeamCft", comm, true);
  (void)api::ask("ncclTeamCft", [&] { return fail(ncclInvalidArgument, "TeamCft : unknown mode {}", number); });
  return kNoTeam;
}
TUTTI_API(ncclTeam_t, TeamCftMultimem, (ncclComm_t comm)) {
  return teamOf("TeamCftMultimem", comm, true);
}
TUTTI_API(ncclTeam_t, TeamRail, (ncclComm_t comm)) {
  return teamOf("TeamRail", comm, false);
}

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
  return api::ask("ncclLsaBarrierCreateRequirement",
                  [&] { return requirementNotYet("ncclLsaBarrierCreateRequirement", outHandle, outReq); });
}

TUTTI_API(ncclResult_t, GinBarrierCreateRequirement,
          (ncclComm_t comm, ncclTeam_t, int, ncclGinBarrierHandle_t* outHandle,
           ncclDevResourceRequirements_t* outReq)) {
  return api::ask("ncclGinBarrierCreateRequirement", [&]() -> Status {
    TRY(comm::checkComm(comm, "GinBarrierCreateRequirement"));
    return requirementNotYet("ncclGinBarrierCreateRequirement", outHandle, outReq);
  });
}

TUTTI_API(int, LLA2ACalcSlots, (int maxElts, int maxEltSize)) {
  return maxElts * ((maxEltSize + 7) / 8);
}

TUTTI_API(ncclResult_t, LLA2ACreateRequirement,
          (int, int, ncclLLA2AHandle_t* outHandle, ncclDevResourceRequirements_t* outReq)) {
  return api::ask("ncclLLA2ACreateRequirement",
                  [&] { return requirementNotYet("ncclLLA2ACreateRequirement", outHandle, outReq); });
}

TUTTI_API(ncclResult_t, GinOutboxCreateRequirement,
          (int, int, ncclGinOutboxHandle_t* outHandle, ncclDevResourceRequirements_t* outReq)) {
  return api::ask("ncclGinOutboxCreateRequirement",
                  [&] { return requirementNotYet("ncclGinOutboxCreateRequirement", outHandle, outReq); });
}

TUTTI_API(ncclResult_t, GinInboxA2ACreateRequirement,
          (ncclTeam_t, int, int, ncclGinInboxA2AHandle_t* outHandle, ncclDevResourceRequirements_t* outReq)) {
  return api::ask("ncclGinInboxA2ACreateRequirement",
                  [&] { return requirementNotYet("ncclGinInboxA2ACreateRequirement", outHandle, outReq); });
}

TUTTI_API(ncclResult_t, GetMultimemDevicePointer, (ncclWindow_t window, size_t, ncclMultimemHandle_t, void** outPtr)) {
  return pointerOfUnknownWindow("ncclGetMultimemDevicePointer", window, outPtr);
}

TUTTI_API(ncclResult_t, GetLsaMultimemDevicePointer, (ncclWindow_t window, size_t, void** outPtr)) {
  return pointerOfUnknownWindow("ncclGetLsaMultimemDevicePointer", window, outPtr);
}

TUTTI_API(ncclResult_t, GetLsaDevicePointer, (ncclWindow_t window, size_t, int, void** outPtr)) {
  return pointerOfUnknownWindow("ncclGetLsaDevicePointer", window, outPtr);
}

TUTTI_API(ncclResult_t, GetPeerDevicePointer, (ncclWindow_t window, size_t, int, void** outPtr)) {
  return pointerOfUnknownWindow("ncclGetPeerDevicePointer", window, outPtr);
}

TUTTI_API(ncclResult_t, GetMultimemDeviceLeInfo, (ncclWindow_t window, size_t, ncclCftLeId* leId, size_t* leOffset)) {
  return endpointOfUnknownWindow("ncclGetMultimemDeviceLeInfo", window, leId, leOffset);
}

TUTTI_API(ncclResult_t, GetCftDeviceLeInfo,
          (ncclWindow_t window, size_t, int, ncclTeam_t, ncclCftLeId* leId, size_t* leOffset)) {
  return endpointOfUnknownWindow("ncclGetCftDeviceLeInfo", window, leId, leOffset);
}

TUTTI_API(ncclResult_t, GetPeerDeviceLeInfo, (ncclWindow_t window, size_t, int, ncclCftLeId* leId, size_t* leOffset)) {
  return endpointOfUnknownWindow("ncclGetPeerDeviceLeInfo", window, leId, leOffset);
}
