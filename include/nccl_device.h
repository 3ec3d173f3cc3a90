/* Host side of the device API: the structs user kernels and the library share, and the functions that fill them.
 * Plain C, API level 2.32.3. Layouts are part of the binary interface. */
#ifndef NCCL_DEVICE_H_
#define NCCL_DEVICE_H_

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_GIN_MAX_CONNECTIONS 4
#define NCCL_GIN_MAX_ACTIVE_BACKENDS 4
#define NCCL_DEV_COMM_WINDOW_TABLE_SIZE 32

typedef uint32_t ncclDevResourceHandle;
typedef ncclDevResourceHandle ncclDevResourceHandle_t;
typedef uint32_t ncclGinSignal_t;
typedef uint32_t ncclGinCounter_t;
/** A logical endpoint: what counted fabric transfers (CFT) name a peer's memory by. */
typedef uint32_t ncclCftLeId;
typedef ncclCftLeId ncclCftLeId_t;
#define NCCL_LE_ID_INVALID ((ncclCftLeId_t)-1)

/** How kernels reach the network. */
typedef enum {
  NCCL_GIN_TYPE_NONE = 0,
  NCCL_GIN_TYPE_PROXY = 2,
  NCCL_GIN_TYPE_GDAKI = 3,
  NCCL_GIN_TYPE_GPI = 4,
  NCCL_GIN_TYPE_EFA_GDA = 5,
  NCCL_GIN_MAX_TYPES = 6
} ncclGinType_t;

/** Which peers kernels reach over the network. */
typedef enum {
  NCCL_GIN_CONNECTION_NONE = 0,
  NCCL_GIN_CONNECTION_FULL = 1,
  NCCL_GIN_CONNECTION_RAIL = 2,
  NCCL_GIN_CONNECTION_CUSTOM_STRIDE = 3
} ncclGinConnectionType_t;

/** Which ranks make a team for counted fabric transfers. */
typedef enum { NCCL_CFT_TEAM_FLAT = 0, NCCL_CFT_TEAM_HIER_MULTIMEM = 1, NCCL_CFT_TEAM_HIER_LSA = 2 } ncclCftTeamMode_t;

/** What of them a device communicator is to offer: bits. */
typedef enum { NCCL_CFT_NONE = 0x0, NCCL_CFT = 0x1, NCCL_CFT_MULTIMEM = 0x2 } ncclCftCap_t;

/** Segments of a window of several allocations. */
struct ncclSegmentWindow;

/** A registered buffer as kernels see it. LSA = load/store accessible: peers whose memory is mapped here. */
typedef struct ncclWindow_vidmem {
  void* winHost;
  char* lsaFlatBase; /**< copy of LSA rank 0; rank r's is r * stride4G * 4 GiB further */
  int lsaRank;
  int worldRank;
  uint32_t stride4G;    /**< distance of neighbouring LSA ranks in units of 4 GiB */
  uint32_t mcOffset4K;  /**< offset in the multicast range in units of 4 KiB */
  uint32_t ginOffset4K; /**< offset in the network's registration in units of 4 KiB */
  uint32_t winFlags;
  void* ginWinsDefaultBackend[NCCL_GIN_MAX_CONNECTIONS];
  struct ncclSegmentWindow* ginMultiSegmentWins;
  int numSegments;
  int cftFlatRank;
  ncclCftLeId_t ucLeIdBase;
} ncclWindow_vidmem_t;

/** A regular subset of ranks: rank r of the team is `stride` world ranks after rank r-1. */
typedef struct ncclTeam {
  int nRanks;
  int rank;
  int stride;
} ncclTeam_t;

typedef struct ncclMultimemHandle {
  void* mcBasePtr;
} ncclMultimemHandle_t;

typedef struct ncclLsaBarrierHandle {
  ncclDevResourceHandle_t bufHandle;
  int nBarriers;
} ncclLsaBarrierHandle_t;

typedef struct ncclGinBarrierHandle {
  ncclGinSignal_t signal0;
  uint32_t reserved;
} ncclGinBarrierHandle_t;

typedef struct ncclCftBarrierHandle {
  ncclDevResourceHandle_t bufHandle;
  int nBarriers;
} ncclCftBarrierHandle_t;

typedef struct ncclLLA2AHandle {
  ncclDevResourceHandle_t bufHandle;
  uint32_t nSlots;
} ncclLLA2AHandle_t;

typedef struct ncclGinOutboxHandle {
  ncclDevResourceHandle_t bufHandle;
  ncclGinCounter_t counter0;
  uint32_t sizeLog2;
} ncclGinOutboxHandle_t;

typedef struct ncclGinInboxA2AHandle {
  ncclDevResourceHandle_t bufHandle;
  ncclGinSignal_t signal0;
  uint32_t sizeLog2;
} ncclGinInboxA2AHandle_t;

/** Memory and network resources a kernel library wants; a list. The out pointers are filled at creation. */
typedef struct ncclDevResourceRequirements {
  struct ncclDevResourceRequirements* next;
  size_t bufferSize;
  size_t bufferAlign;
  ncclDevResourceHandle_t* outBufferHandle;
  int ginSignalCount;
  int ginCounterCount;
  ncclGinSignal_t* outGinSignalStart;
  ncclGinCounter_t* outGinCounterStart;
} ncclDevResourceRequirements_t;

/** A team for which multicast is wanted; a list. */
typedef struct ncclTeamRequirements {
  struct ncclTeamRequirements* next;
  ncclTeam_t team;
  bool multimem;
  ncclMultimemHandle_t* outMultimemHandle;
} ncclTeamRequirements_t;

/** What a device communicator shall offer. Start from NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER. */
typedef struct ncclDevCommRequirements {
  size_t size;
  unsigned int magic;
  unsigned int version;
  ncclDevResourceRequirements_t* resourceRequirementsList;
  ncclTeamRequirements_t* teamRequirementsList;
  bool lsaMultimem;
  int barrierCount;
  int lsaBarrierCount;
  int railGinBarrierCount;
  int lsaLLA2ABlockCount;
  int lsaLLA2ASlotCount;
  bool ginForceEnable;
  int ginContextCount;
  int ginSignalCount;
  int ginCounterCount;
  ncclGinConnectionType_t ginConnectionType;
  bool ginExclusiveContexts;
  int ginQueueDepth;
  int ginTrafficClass;
  int worldGinBarrierCount;
  bool ginStrongSignalsRequired;
  bool ginVaSignalsRequired;
  int ginCustomStride;
  ncclGinType_t ginType;
  bool useRuntimeVersion;
  int cftCaps;
  int cftBarrierCount;
} ncclDevCommRequirements_t;

#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER                                                                       \
  {                                                                                                                  \
    sizeof(ncclDevCommRequirements_t), NCCL_API_MAGIC, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NULL, NULL, \
        false, 0, 0, 0, 0, 0, false, 4, 0, 0, NCCL_GIN_CONNECTION_NONE, false, 0, NCCL_CONFIG_UNDEF_INT, 0, true,    \
        true, 1, NCCL_GIN_TYPE_NONE, false, NCCL_CFT_NONE, 0                                                         \
  }

/** Address ranges and the windows they belong to; a list of tables. */
typedef struct ncclDevCommWindowTable {
  struct {
    uintptr_t base;
    uintptr_t size;
    ncclWindow_t window;
  } entries[NCCL_DEV_COMM_WINDOW_TABLE_SIZE];
  struct ncclDevCommWindowTable* next;
} ncclDevCommWindowTable_t;

/** The part of a window that travels inside a device communicator. */
typedef struct ncclResourceWindow_vidmem {
  char* lsaFlatBase;
  uint32_t stride4G;
  uint32_t mcOffset4K;
} ncclResourceWindow_vidmem_t;

/** A communicator as kernels see it; passed to them by value. */
typedef struct ncclDevComm {
  unsigned int magic;
  unsigned int version;
  int rank;
  int nRanks;
  uint32_t nRanks_rcp32; /**< reciprocal for fast division */
  int lsaRank;
  int lsaSize;
  uint32_t lsaSize_rcp32;
  ncclDevCommWindowTable_t* windowTable;
  ncclWindow_t resourceWindow;
  ncclResourceWindow_vidmem_t resourceWindow_inlined;
  ncclGinBarrierHandle_t hybridDenseGinBarrier;
  ncclMultimemHandle_t lsaMultimem;
  ncclLsaBarrierHandle_t lsaBarrier;
  ncclGinBarrierHandle_t railGinBarrier;
  uint8_t ginConnectionCount;
  uint8_t backendIndex;
  uint8_t ginNetDeviceTypes[NCCL_GIN_MAX_CONNECTIONS];
  void* ginHandles[NCCL_GIN_MAX_CONNECTIONS];
  int ginSignalCount;
  int ginCounterCount;
  uint64_t* ginSignalShadows;
  uint32_t ginContextCount;
  int ginConnectionStride;
  int ginContextStride;
  bool ginStrongLegacySignals;
  uint32_t* abortFlag;
  ncclLsaBarrierHandle_t hybridLsaBarrier;
  ncclGinBarrierHandle_t hybridRailGinBarrier;
  ncclGinBarrierHandle_t worldGinBarrier;
  uint32_t ginConnectionStride_rcp32;
  int cftRank;
  int cftSize;
  int cftMultimemRank;
  int cftMultimemSize;
  uint32_t cftMultimemSize_rcp32;
  ncclCftLeId_t ucLeId;
  ncclCftLeId_t mcLeId;
  ncclCftBarrierHandle_t cftBarrier;
  ncclCftBarrierHandle_t cftMultimemBarrier;
} ncclDevComm_t;

/** Facts about a communicator that decide which device features it offers. */
typedef struct ncclCommProperties {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int rank;
  int nRanks;
  int cudaDev;
  int nvmlDev;
  bool deviceApiSupport;
  bool multimemSupport;
  ncclGinType_t ginType;
  int nLsaTeams;
  bool hostRmaSupport;
  ncclGinType_t railedGinType;
  uint64_t commHash; /**< equal on all ranks, different between communicators */
  int ginMinStride;
  ncclGinConnectionType_t ginConnectionType;
  bool ginSupport[64]; /**< by ncclGinType_t */
  size_t devCommRuntimeVersionSize;
  bool cftSupport;
  bool cftMulticastSupport;
  bool cftCountedSupport;
} ncclCommProperties_t;

#define NCCL_COMM_PROPERTIES_INITIALIZER                                                                            \
  {                                                                                                                 \
    sizeof(ncclCommProperties_t), NCCL_API_MAGIC, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), -1, 0, -1, -1,  \
        false, false, NCCL_GIN_TYPE_NONE, 0, false, NCCL_GIN_TYPE_NONE, 0, 0, NCCL_GIN_CONNECTION_NONE, {false}, 0, \
        false, false, false                                                                                         \
  }

#define NCCL_DECLARE_(result, name, params) \
  result nccl##name params;                 \
  result pnccl##name params

/** Fills `props`, whose size, magic and version come from the initializer. */
NCCL_DECLARE_(ncclResult_t, CommQueryProperties, (ncclComm_t comm, ncclCommProperties_t* props));
/** Makes a device communicator that offers what `reqs` lists. Collective. */
NCCL_DECLARE_(ncclResult_t, DevCommCreate,
              (ncclComm_t comm, const ncclDevCommRequirements_t* reqs, ncclDevComm_t* outDevComm));
/** Frees one. Local. */
NCCL_DECLARE_(ncclResult_t, DevCommDestroy, (ncclComm_t comm, const ncclDevComm_t* devComm));

/** All ranks as a team. */
NCCL_DECLARE_(ncclTeam_t, TeamWorld, (ncclComm_t comm));
/** The ranks that can load and store each other's memory. */
NCCL_DECLARE_(ncclTeam_t, TeamLsa, (ncclComm_t comm));
/** The ranks that reach each other by counted fabric transfers; in C++ `mode` may be left out. */
#ifdef __cplusplus
NCCL_DECLARE_(ncclTeam_t, TeamCft, (ncclComm_t comm, ncclCftTeamMode_t mode = NCCL_CFT_TEAM_FLAT));
#else
NCCL_DECLARE_(ncclTeam_t, TeamCft, (ncclComm_t comm, ncclCftTeamMode_t mode));
#endif
/** Of these, the ranks that one multicast reaches. */
NCCL_DECLARE_(ncclTeam_t, TeamCftMultimem, (ncclComm_t comm));
/** The ranks with the same place in their LSA team. */
NCCL_DECLARE_(ncclTeam_t, TeamRail, (ncclComm_t comm));
/** World rank of a team's rank. */
NCCL_DECLARE_(int, TeamRankToWorld, (ncclComm_t comm, ncclTeam_t team, int rank));
/** LSA rank of a team's rank. */
NCCL_DECLARE_(int, TeamRankToLsa, (ncclComm_t comm, ncclTeam_t team, int rank));

/** Fills `outReq` with what `nBarriers` barriers over an LSA team need. */
NCCL_DECLARE_(ncclResult_t, LsaBarrierCreateRequirement,
              (ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t* outHandle,
               ncclDevResourceRequirements_t* outReq));
/** The same for barriers over the network. */
NCCL_DECLARE_(ncclResult_t, GinBarrierCreateRequirement,
              (ncclComm_t comm, ncclTeam_t team, int nBarriers, ncclGinBarrierHandle_t* outHandle,
               ncclDevResourceRequirements_t* outReq));
/** Slots an all-to-all of `maxElts` elements of at most `maxEltSize` bytes takes. */
NCCL_DECLARE_(int, LLA2ACalcSlots, (int maxElts, int maxEltSize));
/** Fills `outReq` with what `nBlocks` such all-to-alls need. */
NCCL_DECLARE_(ncclResult_t, LLA2ACreateRequirement,
              (int nBlocks, int nSlots, ncclLLA2AHandle_t* outHandle, ncclDevResourceRequirements_t* outReq));
/** Fills `outReq` with what `nBlocks` outboxes of 2^sizeLog2 bytes need. */
NCCL_DECLARE_(ncclResult_t, GinOutboxCreateRequirement,
              (int nBlocks, int sizeLog2, ncclGinOutboxHandle_t* outHandle, ncclDevResourceRequirements_t* outReq));
/** Fills `outReq` with what `nBlocks` inboxes of 2^sizeLog2 bytes for all peers need. */
NCCL_DECLARE_(ncclResult_t, GinInboxA2ACreateRequirement,
              (ncclTeam_t peers, int nBlocks, int sizeLog2, ncclGinInboxA2AHandle_t* outHandle,
               ncclDevResourceRequirements_t* outReq));

/** Address, valid on this device, of `offset` in the multicast view of a window. NULL where there is none. */
NCCL_DECLARE_(ncclResult_t, GetMultimemDevicePointer,
              (ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem, void** outPtr));
/** The same for the multicast object of the LSA team. */
NCCL_DECLARE_(ncclResult_t, GetLsaMultimemDevicePointer, (ncclWindow_t window, size_t offset, void** outPtr));
/** The same in the copy of one LSA rank. */
NCCL_DECLARE_(ncclResult_t, GetLsaDevicePointer, (ncclWindow_t window, size_t offset, int lsaRank, void** outPtr));
/** The same in the copy of one world rank. */
NCCL_DECLARE_(ncclResult_t, GetPeerDevicePointer, (ncclWindow_t window, size_t offset, int peer, void** outPtr));

/** Endpoint, and the offset in it, of `offset` in the multicast view of a window. */
NCCL_DECLARE_(ncclResult_t, GetMultimemDeviceLeInfo,
              (ncclWindow_t window, size_t offset, ncclCftLeId* leId, size_t* leOffset));
/** The same in the copy of one rank of a team for counted fabric transfers. */
NCCL_DECLARE_(ncclResult_t, GetCftDeviceLeInfo,
              (ncclWindow_t window, size_t offset, int peerCft, ncclTeam_t cftTeam, ncclCftLeId* leId,
               size_t* leOffset));
/** The same in the copy of one world rank. */
NCCL_DECLARE_(ncclResult_t, GetPeerDeviceLeInfo,
              (ncclWindow_t window, size_t offset, int peerWorld, ncclCftLeId* leId, size_t* leOffset));

#undef NCCL_DECLARE_

#ifdef __cplusplus
}
#endif

#endif /* NCCL_DEVICE_H_ */
