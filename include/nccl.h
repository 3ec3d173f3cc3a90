/* Public C interface of tutti, compatible with NCCL's API level 2.32.3. C99 and C++.
 *
 * General rules. Every function that returns ncclResult_t returns ncclSuccess or one error code; ncclGetLastError()
 * explains the most recent failure in words. Data movement functions only enqueue work on `stream`. A communicator is
 * used by one host thread at a time; ncclCommAbort() and ncclCommGetAsyncError() may come from another thread.
 * Counts are elements of `datatype`. Each function ncclX is weak and has a strong twin pncclX at the same address, so
 * that a tool can define ncclX itself and call pncclX. */
#ifndef NCCL_H_
#define NCCL_H_

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Applications written for NCCL expect this header to bring the CUDA runtime and the small float types along. Define
 * NCCL_NO_CUDA_HEADERS to get by with a forward declaration of the types of streams and events. */
#if !defined(NCCL_NO_CUDA_HEADERS) && defined(__has_include)
#if __has_include(<cuda_runtime.h>)
#define NCCL_HAS_CUDA_HEADERS_ 1
#endif
#endif
#ifdef NCCL_HAS_CUDA_HEADERS_
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#if defined(__cplusplus) && CUDART_VERSION >= 11080
#include <cuda_fp8.h>
#endif
#elif !defined(__DRIVER_TYPES_H__)
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
#endif

#define NCCL_MAJOR 2
#define NCCL_MINOR 32
#define NCCL_PATCH 3
#define NCCL_SUFFIX ""

/* Version codes had three digits per part less until 2.8. */
#define NCCL_VERSION(X, Y, Z) (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))
#define NCCL_VERSION_CODE 23203

/* First word of every versioned struct: tells an initialised struct from stack garbage. */
#define NCCL_API_MAGIC 0xcafebeef

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Handles ---------------------------------------------------------------------------------------------- */

/** A communicator: one rank's membership in a group of ranks. Opaque. */
typedef struct ncclComm* ncclComm_t;
#define NCCL_COMM_NULL NULL

/** A buffer registered on all ranks. The pointer is valid on the device (see nccl_device.h). */
typedef struct ncclWindow_vidmem* ncclWindow_t;

/** A setting of the library, found by name. Valid for the life of the process. */
typedef struct ncclParamHandle* ncclParamHandle_t;

#define NCCL_UNIQUE_ID_BYTES 128
/** Names a communicator to be created. Copy its bytes unchanged to every rank by any means. */
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

/* ---- Enumerations ----------------------------------------------------------------------------------------- */

/** Outcome of a call. */
typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1, /**< a call to CUDA failed */
  ncclSystemError = 2,        /**< a call to the operating system failed */
  ncclInternalError = 3,      /**< a defect of the library, or memory corruption */
  ncclInvalidArgument = 4,    /**< one argument has a bad value */
  ncclInvalidUsage = 5,       /**< the call is not possible now, or not on this machine */
  ncclRemoteError = 6,        /**< a peer died or the network failed */
  ncclInProgress = 7,         /**< non-blocking communicator: ask ncclCommGetAsyncError() again */
  ncclTimeout = 8,            /**< a wait exceeded its bound */
  ncclNumResults = 9
} ncclResult_t;

/** Type of the elements. */
typedef enum {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
} ncclDataType_t;

/** Reduction operator. Values from ncclNumOps up belong to operators made by ncclRedOpCreatePreMulSum(). */
typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4, /**< sum divided by the number of ranks */
  ncclNumOps = 5,
  ncclMaxRedOp = 0x7fffffff /**< fixes the width of the enumeration at 32 bits */
} ncclRedOp_t;

/** Where the scalar of a pre-multiplying operator lives, and when it is read. */
typedef enum {
  ncclScalarDevice = 0,       /**< device-visible memory, read while the collective runs */
  ncclScalarHostImmediate = 1 /**< host memory, read before the creating call returns */
} ncclScalarResidence_t;

/** What ncclCommMemStats() can count, in bytes of GPU memory. */
typedef enum {
  ncclStatGpuMemSuspend = 0,   /**< could be released by ncclCommSuspend() */
  ncclStatGpuMemSuspended = 1, /**< is released at present */
  ncclStatGpuMemPersist = 2,   /**< stays while suspended */
  ncclStatGpuMemTotal = 3      /**< everything the communicator tracks */
} ncclCommMemStat_t;

/** Whether host operations may use counted fabric transfers. */
typedef enum {
  ncclHostCftDefault = INT_MIN, /**< as the library thinks best */
  ncclHostCftEnable = 1,
  ncclHostCftDisable = 2,
  ncclHostCftFallback = 3
} ncclHostCftMode_t;

/** Which parts of NVLink SHARP host operations do without: bits. */
typedef enum {
  ncclNvlsHostModeDefault = INT_MIN,                 /**< as the library thinks best */
  ncclNvlsHostModeEnable = 0,                        /**< without none */
  ncclNvlsHostModeDisableTransport = 1,              /**< without the transport and its registered buffers */
  ncclNvlsHostModeDisableSymmetricMultimem = 1 << 1, /**< symmetric kernels and copy engines do not multicast */
  ncclNvlsHostModeDisable = INT_MAX                  /**< without all parts, also those to come */
} ncclNvlsHostMode_t;

/** How the library's TCP connections are protected. */
typedef enum {
  NCCL_ENCRYPTION_MODE_NONE = 0, /**< not encrypted */
  NCCL_ENCRYPTION_MODE_PSK = 1   /**< with a key that all ranks know */
} ncclEncryptionMode_t;

/* ---- Structs and their flags ------------------------------------------------------------------------------ */

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT -1.0f
#define NCCL_SPLIT_NOCOLOR -1

#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_STRICT_ORDERING 0x02
#define NCCL_WIN_GIN_ONLY 0x04
#define NCCL_WIN_CFT_COUNTED 0x08
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
#define NCCL_REVOKE_DEFAULT 0x00
#define NCCL_SUSPEND_MEM 0x01

/** Options of a communicator. Start from NCCL_CONFIG_INITIALIZER, then set what matters; everything left undefined
 * takes its default. Callers compiled against older or newer layouts are understood through size and version. */
typedef struct ncclConfig_v23100 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;            /**< 0: calls return ncclInProgress instead of waiting */
  int cgaClusterSize;      /**< thread blocks per cluster, 0..8 */
  int minCTAs;             /**< lower bound of thread blocks (channels) per operation */
  int maxCTAs;             /**< upper bound of the same */
  const char* netName;     /**< network to use; copied */
  int splitShare;          /**< children made by split share resources with this one */
  int trafficClass;        /**< handed to the network */
  const char* commName;    /**< for logs and tools; copied */
  int collnetEnable;       /**< in-network reductions */
  int CTAPolicy;           /**< NCCL_CTA_POLICY_* bits */
  int shrinkShare;         /**< children made by shrink share resources with this one */
  int nvlsCTAs;            /**< thread blocks of NVLink SHARP kernels */
  int nChannelsPerNetPeer; /**< 1..64 */
  int nvlinkCentricSched;  /**< schedule by NVLink first */
  int graphUsageMode;      /**< 0 no graphs, 1 one graph at a time, 2 graphs and eager work mixed */
  int numRmaCtx;           /**< contexts of one-sided operations */
  int maxP2pPeers;         /**< peers one rank exchanges messages with at most */
  int graphStreamOrdering; /**< 0: captured operations are not serialised */
  int launchOrderImplicit; /**< 1: launches of several communicators keep the order of the calls */
  int numRmaSig;           /**< signals of one-sided operations */
  int rmaEagerInit;        /**< 1: one-sided operations are set up with the communicator */
  int hostCftMode;         /**< ncclHostCftMode_t */
  int nvlsHostMode;        /**< ncclNvlsHostMode_t */
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                                                                    \
  {                                                                                                                \
    sizeof(ncclConfig_t), NCCL_API_MAGIC, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_CONFIG_UNDEF_INT, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR,                \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT,                \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT                                                               \
  }

/** An option of one vendor's library, one of a list. tutti ignores all of them. */
typedef struct ncclConfigExt {
  struct ncclConfigExt* next; /**< NULL: the last one */
  struct {
    int vendorId; /**< of the vendor's choice, not 0, below 2^24 */
    int optionId;
  } key;
  union {
    int i;
    const char* s;
    void* raw;
  } val;
} ncclConfigExt_t;

/** Options of one collective, equal on all ranks but for the event. Start from NCCL_COLLCONFIG_INITIALIZER. Read during
 * the call and not kept. Callers compiled against older or newer layouts are understood through size and version.
 *
 * algSelection is a list of names with commas between them: of algorithms (Ring, Tree, OneShot, Direct, PAT, ...), of
 * protocols (LL, LL128, Simple), or of both together ("Tree/LL"). Where both kinds stand alone, one of each is used
 * ("Ring,Tree,LL" is Ring/LL or Tree/LL); ^ in front turns the list into everything but it. What is named overrides
 * NCCL_ALGO and NCCL_PROTO for this call. */
typedef struct ncclCollConfig_v23200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  ncclConfigExt_t* ext;
  int minCTAs;                       /**< lower bound of thread blocks (channels), as far as there are so many */
  int maxCTAs;                       /**< upper bound, at most the communicator's maxCTAs */
  int nvlsCTAs;                      /**< the same of NVLink SHARP kernels */
  int cgaClusterSize;                /**< thread blocks per cluster, 0..8 */
  const char* algSelection;          /**< NULL or "": the library chooses */
  int forceAlgSelection;             /**< 1: ncclInvalidArgument where nothing of the selection is possible; 0: then the
                                          library chooses */
  int CTAPolicy;                     /**< NCCL_CTA_POLICY_* bits */
  uint64_t userProfilerTag;          /**< for tools; the highest bit is reserved */
  cudaEvent_t launchCompletionEvent; /**< recorded when what the kernel waited for on its stream is done; at most one
                                          of a communicator in a group */
} ncclCollConfig_t;

#define NCCL_COLLCONFIG_INITIALIZER                                                                                    \
  {                                                                                                                    \
    sizeof(ncclCollConfig_t), NCCL_API_MAGIC, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_CONFIG_UNDEF_PTR, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                    \
        NCCL_CONFIG_UNDEF_PTR, 1, NCCL_CONFIG_UNDEF_INT, 0, NCCL_CONFIG_UNDEF_PTR                                      \
  }

/** How TCP connections of the process are to be protected. Start from NCCL_ENCRYPTION_CONFIG_INITIALIZER. */
typedef struct ncclEncryptionConfig_v23200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int mode;        /**< ncclEncryptionMode_t */
  const char* psk; /**< the key */
} ncclEncryptionConfig_t;

#define NCCL_ENCRYPTION_CONFIG_INITIALIZER                                                            \
  {                                                                                                   \
    sizeof(ncclEncryptionConfig_t), NCCL_API_MAGIC, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), \
        NCCL_ENCRYPTION_MODE_NONE, NCCL_CONFIG_UNDEF_PTR                                              \
  }

/** What ncclGroupSimulateEnd() estimates. */
typedef struct ncclSimInfo_v22200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime; /**< microseconds; NCCL_UNDEF_FLOAT where nothing was estimated */
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER \
  { sizeof(ncclSimInfo_t), 0x74685283, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_UNDEF_FLOAT }

/** One thing ncclWaitSignal() waits for: `opCnt` signals from `peer`. */
typedef struct {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
} ncclWaitSignalDesc_t;

/* ---- Functions. Each line declares ncclX and pncclX. ------------------------------------------------------ */

#define NCCL_DECLARE_(result, name, params) \
  result nccl##name params;                 \
  result pnccl##name params

/** Allocates device memory on the current device, of the kind that registers and shares best. Free: ncclMemFree(). */
NCCL_DECLARE_(ncclResult_t, MemAlloc, (void** ptr, size_t size));
/** Frees memory of ncclMemAlloc(), whatever device is current. */
NCCL_DECLARE_(ncclResult_t, MemFree, (void* ptr));

/** Stores the library's version code, which is at least the header's NCCL_VERSION_CODE. Needs no GPU. */
NCCL_DECLARE_(ncclResult_t, GetVersion, (int* version));
/** Makes the name of a new communicator. The calling process must live until all ranks have joined. Needs no GPU. */
NCCL_DECLARE_(ncclResult_t, GetUniqueId, (ncclUniqueId * uniqueId));
/** A fixed short text for a result code. */
NCCL_DECLARE_(const char*, GetErrorString, (ncclResult_t result));
/** Why this thread's last call failed; if it did not, why `comm` has failed; if it has not, or is NULL or gone, the
 * most recent error or warning of this process, "" if there was none. The text stays for a while: copy what is to be
 * kept. */
NCCL_DECLARE_(const char*, GetLastError, (ncclComm_t comm));
/** Says, before the first communicator, how the TCP connections of this process are to be protected. */
NCCL_DECLARE_(ncclResult_t, SetEncryption, (const ncclEncryptionConfig_t* config));
/** Makes the library read its NCCL_DEBUG* variables again. Deprecated. */
#if defined(__GNUC__)
__attribute__((deprecated("ncclResetDebugInit() will be removed")))
#endif
void ncclResetDebugInit(void);
void pncclResetDebugInit(void);

/** Joins communicator `commId` as `rank` of `nranks`, on the current device. Collective over all ranks. */
NCCL_DECLARE_(ncclResult_t, CommInitRank, (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank));
/** The same with options; `config` may be NULL. */
NCCL_DECLARE_(ncclResult_t, CommInitRankConfig,
              (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config));
/** The same with several unique ids that share the load of a large start. All ranks pass the same list. */
NCCL_DECLARE_(ncclResult_t, CommInitRankScalable,
              (ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds, ncclConfig_t* config));
/** Makes a communicator of `ndev` devices of this process; comm[i] is rank i on devlist[i] (NULL: device i). */
NCCL_DECLARE_(ncclResult_t, CommInitAll, (ncclComm_t * comm, int ndev, const int* devlist));

/** Completes everything outstanding. Afterwards only ncclCommDestroy() and queries are allowed. NULL is a no-op. */
NCCL_DECLARE_(ncclResult_t, CommFinalize, (ncclComm_t comm));
/** Frees the communicator after its outstanding work; finalizes first if need be. NULL is a no-op. */
NCCL_DECLARE_(ncclResult_t, CommDestroy, (ncclComm_t comm));
/** Stops outstanding work, even where peers are dead, and frees the communicator. NULL is a no-op. */
NCCL_DECLARE_(ncclResult_t, CommAbort, (ncclComm_t comm));
/** Stops outstanding work and keeps the object, so that the survivors can split or shrink it. */
NCCL_DECLARE_(ncclResult_t, CommRevoke, (ncclComm_t comm, int revokeFlags));

/** Divides a communicator by color, ordered by key. Collective; NCCL_SPLIT_NOCOLOR takes part and gets NULL. */
NCCL_DECLARE_(ncclResult_t, CommSplit,
              (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config));
/** Makes a communicator of all ranks but the listed ones; called by the survivors. The list is sorted in place. */
NCCL_DECLARE_(ncclResult_t, CommShrink,
              (ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm, ncclConfig_t* config,
               int shrinkFlags));
/** Makes the id with which new ranks join `comm` through ncclCommGrow(). Valid once. */
NCCL_DECLARE_(ncclResult_t, CommGetUniqueId, (ncclComm_t comm, ncclUniqueId* uniqueId));
/** Extends a communicator to `nRanks`: members pass `comm` and rank -1, new ranks pass comm NULL and their rank. */
NCCL_DECLARE_(ncclResult_t, CommGrow,
              (ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm,
               ncclConfig_t* config));

/** Stores the state of the communicator: ncclSuccess, ncclInProgress, or the first error. Never blocks. */
NCCL_DECLARE_(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t* asyncError));
/** Stores the number of ranks. */
NCCL_DECLARE_(ncclResult_t, CommCount, (const ncclComm_t comm, int* count));
/** Stores the ordinal of the communicator's device. */
NCCL_DECLARE_(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int* device));
/** Stores the caller's rank. */
NCCL_DECLARE_(ncclResult_t, CommUserRank, (const ncclComm_t comm, int* rank));

/** Announces a buffer that will be used repeatedly. Local. */
NCCL_DECLARE_(ncclResult_t, CommRegister, (const ncclComm_t comm, void* buff, size_t size, void** handle));
/** Takes back one ncclCommRegister(). A NULL handle is a no-op. */
NCCL_DECLARE_(ncclResult_t, CommDeregister, (const ncclComm_t comm, void* handle));
/** Registers a buffer on all ranks (collective). Stores NULL where the machine has no symmetric memory. */
NCCL_DECLARE_(ncclResult_t, CommWindowRegister,
              (ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags));
/** Takes a window back. Local. A NULL window is a no-op. */
NCCL_DECLARE_(ncclResult_t, CommWindowDeregister, (ncclComm_t comm, ncclWindow_t win));
/** Stores the address the window was registered with. */
NCCL_DECLARE_(ncclResult_t, WinGetUserPtr, (ncclComm_t comm, ncclWindow_t win, void** outUserPtr));

/** Releases what `flags` names (NCCL_SUSPEND_MEM: GPU memory) until ncclCommResume(). */
NCCL_DECLARE_(ncclResult_t, CommSuspend, (ncclComm_t comm, int flags));
/** Undoes ncclCommSuspend(): connections are opened again, each by the transport that it had. Captured graphs stay
 * valid. */
NCCL_DECLARE_(ncclResult_t, CommResume, (ncclComm_t comm));
/** Stores one number about the communicator's GPU memory, in bytes. */
NCCL_DECLARE_(ncclResult_t, CommMemStats, (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value));

/** Makes an operator that multiplies each rank's input by that rank's scalar before summing. */
NCCL_DECLARE_(ncclResult_t, RedOpCreatePreMulSum,
              (ncclRedOp_t * op, void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence,
               ncclComm_t comm));
/** Frees such an operator; operations already issued keep it. */
NCCL_DECLARE_(ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t comm));

/** Reduces `count` elements of all ranks into `recvbuff` of `root`. In place: sendbuff == recvbuff. */
NCCL_DECLARE_(ncclResult_t, Reduce,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
               ncclComm_t comm, cudaStream_t stream));
/** ncclBroadcast() in place. */
NCCL_DECLARE_(ncclResult_t, Bcast,
              (void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream));
/** Copies `count` elements of root's sendbuff to every recvbuff. In place: sendbuff == recvbuff. */
NCCL_DECLARE_(ncclResult_t, Broadcast,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
               cudaStream_t stream));
/** Reduces `count` elements of all ranks into every recvbuff. In place: sendbuff == recvbuff. */
NCCL_DECLARE_(ncclResult_t, AllReduce,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
               ncclComm_t comm, cudaStream_t stream));
/** Reduces and leaves block `rank` of `recvcount` elements here. In place: recvbuff == sendbuff + rank*recvcount. */
NCCL_DECLARE_(ncclResult_t, ReduceScatter,
              (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,
               ncclComm_t comm, cudaStream_t stream));
/** Collects `sendcount` elements of every rank everywhere. In place: sendbuff == recvbuff + rank*sendcount. */
NCCL_DECLARE_(ncclResult_t, AllGather,
              (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,
               cudaStream_t stream));
/** Block j of `count` elements goes to rank j; block i arrives from rank i. Not in place. */
NCCL_DECLARE_(ncclResult_t, AlltoAll,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
               cudaStream_t stream));
/** Collects `count` elements of every rank on `root`. In place on root: sendbuff == recvbuff + root*count. */
NCCL_DECLARE_(ncclResult_t, Gather,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
               cudaStream_t stream));
/** Hands block i of `count` elements of `root` to rank i. In place on root: recvbuff == sendbuff + root*count. */
NCCL_DECLARE_(ncclResult_t, Scatter,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
               cudaStream_t stream));

/* The same collectives with options of their own; `config` NULL: as without. All ranks pass the same options. */
NCCL_DECLARE_(ncclResult_t, ReduceConfig,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config));
NCCL_DECLARE_(ncclResult_t, BroadcastConfig,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
               cudaStream_t stream, const ncclCollConfig_t* config));
NCCL_DECLARE_(ncclResult_t, AllReduceConfig,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config));
NCCL_DECLARE_(ncclResult_t, ReduceScatterConfig,
              (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,
               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config));
NCCL_DECLARE_(ncclResult_t, AllGatherConfig,
              (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,
               cudaStream_t stream, const ncclCollConfig_t* config));
NCCL_DECLARE_(ncclResult_t, AlltoAllConfig,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
               cudaStream_t stream, const ncclCollConfig_t* config));
NCCL_DECLARE_(ncclResult_t, GatherConfig,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
               cudaStream_t stream, const ncclCollConfig_t* config));
NCCL_DECLARE_(ncclResult_t, ScatterConfig,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
               cudaStream_t stream, const ncclCollConfig_t* config));

/** Sends to `peer`, who calls ncclRecv() with as many bytes. Exchanges belong into one group. */
NCCL_DECLARE_(ncclResult_t, Send,
              (const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
               cudaStream_t stream));
/** Receives from `peer`, who calls ncclSend() with as many bytes. */
NCCL_DECLARE_(ncclResult_t, Recv,
              (void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream));

/** Writes into a peer's window, then raises a signal there. The last three integers must be 0. */
NCCL_DECLARE_(ncclResult_t, PutSignal,
              (const void* localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin,
               size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream));
/** Raises a signal at a peer after everything put there before. */
NCCL_DECLARE_(ncclResult_t, Signal,
              (int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream));
/** Makes the stream wait for signals, which are consumed. */
NCCL_DECLARE_(ncclResult_t, WaitSignal,
              (int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm, cudaStream_t stream));

/** Opens a group: calls of this thread are collected until the matching ncclGroupEnd(). Groups nest. */
NCCL_DECLARE_(ncclResult_t, GroupStart, (void));
/** Closes a group; the outermost one starts everything collected, as one operation. */
NCCL_DECLARE_(ncclResult_t, GroupEnd, (void));
/** Closes a group, starts nothing, and estimates how long it would have taken. NULL: same as ncclGroupEnd(). */
NCCL_DECLARE_(ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t * simInfo));

/** Finds a setting by its full name, e.g. "NCCL_DEBUG". */
NCCL_DECLARE_(ncclResult_t, ParamBind, (ncclParamHandle_t * out, const char* key));
/** Reads a setting; the function must fit its type exactly. */
NCCL_DECLARE_(ncclResult_t, ParamGetI8, (ncclParamHandle_t handle, int8_t* out));
NCCL_DECLARE_(ncclResult_t, ParamGetI16, (ncclParamHandle_t handle, int16_t* out));
NCCL_DECLARE_(ncclResult_t, ParamGetI32, (ncclParamHandle_t handle, int32_t* out));
NCCL_DECLARE_(ncclResult_t, ParamGetI64, (ncclParamHandle_t handle, int64_t* out));
NCCL_DECLARE_(ncclResult_t, ParamGetU8, (ncclParamHandle_t handle, uint8_t* out));
NCCL_DECLARE_(ncclResult_t, ParamGetU16, (ncclParamHandle_t handle, uint16_t* out));
NCCL_DECLARE_(ncclResult_t, ParamGetU32, (ncclParamHandle_t handle, uint32_t* out));
NCCL_DECLARE_(ncclResult_t, ParamGetU64, (ncclParamHandle_t handle, uint64_t* out));
/** Reads a text setting. The text belongs to the calling thread and lasts until its next call. */
NCCL_DECLARE_(ncclResult_t, ParamGetStr, (ncclParamHandle_t handle, const char** out));
/** Copies the raw bytes of a setting; `*len` becomes their number. A buffer shorter than that is refused. */
NCCL_DECLARE_(ncclResult_t, ParamGet, (ncclParamHandle_t handle, void* out, int maxLen, int* len));
/** The value of a setting as text, by name. Lives as with ncclParamGetStr(). */
NCCL_DECLARE_(ncclResult_t, ParamGetParameter, (const char* key, const char** value, int* valueLen));
/** The names of all settings; the table lasts for the life of the process. */
NCCL_DECLARE_(ncclResult_t, ParamGetAllParameterKeys, (const char*** table, int* tableLen));
/** Prints all settings to stdout. */
NCCL_DECLARE_(void, ParamDumpAll, (void));

#undef NCCL_DECLARE_

#ifdef __cplusplus
}
#endif

#endif /* NCCL_H_ */
