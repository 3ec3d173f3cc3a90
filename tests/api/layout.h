/* Sizes, offsets and values of the binary interface; compiled as C99 and as C++. */
#include <stddef.h>

#include "nccl_device.h"

#ifdef __cplusplus
#define CHECK(name, condition) static_assert(condition, #name)
#else
#define CHECK(name, condition) typedef char check_##name[(condition) ? 1 : -1]
#endif
#define SIZE(type, bytes) CHECK(size_of_##type, sizeof(type) == (bytes))
#define AT(type, field, offset) CHECK(offset_of_##type##_##field, offsetof(type, field) == (offset))

SIZE(ncclUniqueId, 128);
SIZE(ncclResult_t, 4);
SIZE(ncclRedOp_t, 4);
SIZE(ncclConfig_t, 96);
AT(ncclConfig_t, magic, 8);
AT(ncclConfig_t, version, 12);
AT(ncclConfig_t, blocking, 16);
AT(ncclConfig_t, cgaClusterSize, 20);
AT(ncclConfig_t, minCTAs, 24);
AT(ncclConfig_t, maxCTAs, 28);
AT(ncclConfig_t, netName, 32);
AT(ncclConfig_t, splitShare, 40);
AT(ncclConfig_t, trafficClass, 44);
AT(ncclConfig_t, commName, 48);
AT(ncclConfig_t, collnetEnable, 56);
AT(ncclConfig_t, CTAPolicy, 60);
AT(ncclConfig_t, shrinkShare, 64);
AT(ncclConfig_t, nvlsCTAs, 68);
AT(ncclConfig_t, nChannelsPerNetPeer, 72);
AT(ncclConfig_t, nvlinkCentricSched, 76);
AT(ncclConfig_t, graphUsageMode, 80);
AT(ncclConfig_t, numRmaCtx, 84);
AT(ncclConfig_t, maxP2pPeers, 88);
AT(ncclConfig_t, graphStreamOrdering, 92);
SIZE(ncclSimInfo_t, 24);
AT(ncclSimInfo_t, estimatedTime, 16);
SIZE(ncclWaitSignalDesc_t, 16);

SIZE(ncclWindow_vidmem_t, 88);
AT(ncclWindow_vidmem_t, lsaFlatBase, 8);
AT(ncclWindow_vidmem_t, stride4G, 24);
AT(ncclWindow_vidmem_t, ginOffset4K, 32);
AT(ncclWindow_vidmem_t, ginWins, 40);
AT(ncclWindow_vidmem_t, segmentWindows, 72);
AT(ncclWindow_vidmem_t, numSegments, 80);
SIZE(ncclTeam_t, 12);
SIZE(ncclDevResourceRequirements_t, 56);
SIZE(ncclTeamRequirements_t, 32);
SIZE(ncclDevCommWindowTable_t, 776);
SIZE(ncclDevCommRequirements_t, 96);
AT(ncclDevCommRequirements_t, resourceRequirementsList, 16);
AT(ncclDevCommRequirements_t, lsaMultimem, 32);
AT(ncclDevCommRequirements_t, ginCounterCount, 68);
AT(ncclDevCommRequirements_t, ginConnectionType, 72);
AT(ncclDevCommRequirements_t, ginExclusiveContexts, 76);
AT(ncclDevCommRequirements_t, ginQueueDepth, 80);
AT(ncclDevCommRequirements_t, worldGinBarrierCount, 88);
AT(ncclDevCommRequirements_t, ginStrongSignalsRequired, 92);
AT(ncclDevCommRequirements_t, ginVaSignalsRequired, 93);
SIZE(ncclDevComm_t, 240);
AT(ncclDevComm_t, rank, 8);
AT(ncclDevComm_t, windowTable, 32);
AT(ncclDevComm_t, resourceWindow_inlined, 48);
AT(ncclDevComm_t, hybridWorldGinBarrier, 112);
AT(ncclDevComm_t, lsaMultimem, 120);
AT(ncclDevComm_t, railGinBarrier, 136);
AT(ncclDevComm_t, ginConnectionCount, 144);
AT(ncclDevComm_t, ginHandles, 152);
AT(ncclDevComm_t, ginSignalCount, 184);
AT(ncclDevComm_t, ginSignalShadows, 192);
AT(ncclDevComm_t, ginContextCount, 200);
AT(ncclDevComm_t, abortFlag, 208);
AT(ncclDevComm_t, worldGinBarrier, 232);
SIZE(ncclCommProperties_t, 56);
AT(ncclCommProperties_t, rank, 16);
AT(ncclCommProperties_t, nvmlDev, 28);
AT(ncclCommProperties_t, multimemSupport, 33);
AT(ncclCommProperties_t, ginType, 36);
AT(ncclCommProperties_t, nLsaTeams, 40);
AT(ncclCommProperties_t, hostRmaSupport, 44);
AT(ncclCommProperties_t, railedGinType, 48);

CHECK(version_code, NCCL_VERSION_CODE == 23007 && NCCL_VERSION(2, 30, 7) == 23007 && NCCL_VERSION(2, 7, 8) == 2708);
CHECK(results, ncclInvalidUsage == 5 && ncclInProgress == 7 && ncclTimeout == 8 && ncclNumResults == 9);
CHECK(types, ncclUint64 == 5 && ncclDouble == 8 && ncclBfloat16 == 9 && ncclFloat8e5m2 == 11 && ncclNumTypes == 12);
CHECK(operators, ncclMin == 3 && ncclAvg == 4 && ncclNumOps == 5 && ncclMaxRedOp == 0x7fffffff);
CHECK(residence, ncclScalarDevice == 0 && ncclScalarHostImmediate == 1);
CHECK(gin_types, NCCL_GIN_TYPE_PROXY == 2 && NCCL_GIN_TYPE_GDAKI == 3 && NCCL_GIN_TYPE_GPI == 4);
