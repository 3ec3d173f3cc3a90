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
SIZE(ncclConfig_t, 120);
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
AT(ncclConfig_t, launchOrderImplicit, 96);
AT(ncclConfig_t, numRmaSig, 100);
AT(ncclConfig_t, rmaEagerInit, 104);
AT(ncclConfig_t, hostCftMode, 108);
AT(ncclConfig_t, nvlsHostMode, 112);
SIZE(ncclCollConfig_t, 72);
AT(ncclCollConfig_t, ext, 16);
AT(ncclCollConfig_t, minCTAs, 24);
AT(ncclCollConfig_t, maxCTAs, 28);
AT(ncclCollConfig_t, nvlsCTAs, 32);
AT(ncclCollConfig_t, cgaClusterSize, 36);
AT(ncclCollConfig_t, algSelection, 40);
AT(ncclCollConfig_t, forceAlgSelection, 48);
AT(ncclCollConfig_t, CTAPolicy, 52);
AT(ncclCollConfig_t, userProfilerTag, 56);
AT(ncclCollConfig_t, launchCompletionEvent, 64);
SIZE(ncclConfigExt_t, 24);
AT(ncclConfigExt_t, key, 8);
AT(ncclConfigExt_t, val, 16);
SIZE(ncclEncryptionConfig_t, 32);
AT(ncclEncryptionConfig_t, mode, 16);
AT(ncclEncryptionConfig_t, psk, 24);
SIZE(ncclSimInfo_t, 24);
AT(ncclSimInfo_t, estimatedTime, 16);
SIZE(ncclWaitSignalDesc_t, 16);

SIZE(ncclWindow_vidmem_t, 96);
AT(ncclWindow_vidmem_t, lsaFlatBase, 8);
AT(ncclWindow_vidmem_t, stride4G, 24);
AT(ncclWindow_vidmem_t, ginOffset4K, 32);
AT(ncclWindow_vidmem_t, winFlags, 36);
AT(ncclWindow_vidmem_t, ginWinsDefaultBackend, 40);
AT(ncclWindow_vidmem_t, ginMultiSegmentWins, 72);
AT(ncclWindow_vidmem_t, numSegments, 80);
AT(ncclWindow_vidmem_t, cftFlatRank, 84);
AT(ncclWindow_vidmem_t, ucLeIdBase, 88);
SIZE(ncclTeam_t, 12);
SIZE(ncclDevResourceRequirements_t, 56);
SIZE(ncclTeamRequirements_t, 32);
SIZE(ncclDevCommWindowTable_t, 776);
SIZE(ncclDevCommRequirements_t, 120);
AT(ncclDevCommRequirements_t, resourceRequirementsList, 16);
AT(ncclDevCommRequirements_t, lsaMultimem, 32);
AT(ncclDevCommRequirements_t, ginCounterCount, 68);
AT(ncclDevCommRequirements_t, ginConnectionType, 72);
AT(ncclDevCommRequirements_t, ginExclusiveContexts, 76);
AT(ncclDevCommRequirements_t, ginQueueDepth, 80);
AT(ncclDevCommRequirements_t, worldGinBarrierCount, 88);
AT(ncclDevCommRequirements_t, ginStrongSignalsRequired, 92);
AT(ncclDevCommRequirements_t, ginVaSignalsRequired, 93);
AT(ncclDevCommRequirements_t, ginCustomStride, 96);
AT(ncclDevCommRequirements_t, ginType, 100);
AT(ncclDevCommRequirements_t, useRuntimeVersion, 104);
AT(ncclDevCommRequirements_t, cftCaps, 108);
AT(ncclDevCommRequirements_t, cftBarrierCount, 112);
SIZE(ncclDevComm_t, 248);
AT(ncclDevComm_t, rank, 8);
AT(ncclDevComm_t, windowTable, 32);
AT(ncclDevComm_t, resourceWindow, 40);
AT(ncclDevComm_t, resourceWindow_inlined, 48);
AT(ncclDevComm_t, hybridDenseGinBarrier, 64);
AT(ncclDevComm_t, lsaMultimem, 72);
AT(ncclDevComm_t, lsaBarrier, 80);
AT(ncclDevComm_t, railGinBarrier, 88);
AT(ncclDevComm_t, ginConnectionCount, 96);
AT(ncclDevComm_t, backendIndex, 97);
AT(ncclDevComm_t, ginNetDeviceTypes, 98);
AT(ncclDevComm_t, ginHandles, 104);
AT(ncclDevComm_t, ginSignalCount, 136);
AT(ncclDevComm_t, ginSignalShadows, 144);
AT(ncclDevComm_t, ginContextCount, 152);
AT(ncclDevComm_t, ginConnectionStride, 156);
AT(ncclDevComm_t, ginContextStride, 160);
AT(ncclDevComm_t, ginStrongLegacySignals, 164);
AT(ncclDevComm_t, abortFlag, 168);
AT(ncclDevComm_t, hybridLsaBarrier, 176);
AT(ncclDevComm_t, hybridRailGinBarrier, 184);
AT(ncclDevComm_t, worldGinBarrier, 192);
AT(ncclDevComm_t, ginConnectionStride_rcp32, 200);
AT(ncclDevComm_t, cftRank, 204);
AT(ncclDevComm_t, cftMultimemSize_rcp32, 220);
AT(ncclDevComm_t, ucLeId, 224);
AT(ncclDevComm_t, mcLeId, 228);
AT(ncclDevComm_t, cftBarrier, 232);
AT(ncclDevComm_t, cftMultimemBarrier, 240);
SIZE(ncclCommProperties_t, 152);
AT(ncclCommProperties_t, rank, 16);
AT(ncclCommProperties_t, nvmlDev, 28);
AT(ncclCommProperties_t, multimemSupport, 33);
AT(ncclCommProperties_t, ginType, 36);
AT(ncclCommProperties_t, nLsaTeams, 40);
AT(ncclCommProperties_t, hostRmaSupport, 44);
AT(ncclCommProperties_t, railedGinType, 48);
AT(ncclCommProperties_t, commHash, 56);
AT(ncclCommProperties_t, ginMinStride, 64);
AT(ncclCommProperties_t, ginConnectionType, 68);
AT(ncclCommProperties_t, ginSupport, 72);
AT(ncclCommProperties_t, devCommRuntimeVersionSize, 136);
AT(ncclCommProperties_t, cftSupport, 144);
AT(ncclCommProperties_t, cftMulticastSupport, 145);
AT(ncclCommProperties_t, cftCountedSupport, 146);

CHECK(version_code, NCCL_VERSION_CODE == 23203 && NCCL_VERSION(2, 32, 3) == 23203 && NCCL_VERSION(2, 7, 8) == 2708);
CHECK(results, ncclInvalidUsage == 5 && ncclInProgress == 7 && ncclTimeout == 8 && ncclNumResults == 9);
CHECK(types, ncclUint64 == 5 && ncclDouble == 8 && ncclBfloat16 == 9 && ncclFloat8e5m2 == 11 && ncclNumTypes == 12);
CHECK(operators, ncclMin == 3 && ncclAvg == 4 && ncclNumOps == 5 && ncclMaxRedOp == 0x7fffffff);
CHECK(residence, ncclScalarDevice == 0 && ncclScalarHostImmediate == 1);
CHECK(gin_types, NCCL_GIN_TYPE_PROXY == 2 && NCCL_GIN_TYPE_GDAKI == 3 && NCCL_GIN_TYPE_GPI == 4);
CHECK(gin_more, NCCL_GIN_TYPE_EFA_GDA == 5 && NCCL_GIN_MAX_TYPES == 6 && NCCL_GIN_CONNECTION_CUSTOM_STRIDE == 3);
CHECK(cft, ncclHostCftFallback == 3 && NCCL_CFT_TEAM_HIER_LSA == 2 && NCCL_CFT_MULTIMEM == 2);
CHECK(nvls, ncclNvlsHostModeDisableSymmetricMultimem == 2 && ncclNvlsHostModeDisable == 0x7fffffff);
CHECK(windows, NCCL_WIN_GIN_ONLY == 4 && NCCL_WIN_CFT_COUNTED == 8);
