/* Part of nccl_net.h: what networks (net) and networks that reduce and gather by themselves (collNet) have in common:
 * constants, what the library gives to a plugin, what a plugin says of a device, and the functions of both. C99 and
 * C++. */
#ifndef NCCL_NET_TYPES_H_
#define NCCL_NET_TYPES_H_

#include <stddef.h>
#include <stdint.h>

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Put in front of the object that a plugin exports. */
#define NCCL_PLUGIN_EXPORT __attribute__((visibility("default")))

/* ---- Constants -------------------------------------------------------------------------------------------- */

#define NCCL_NET_HANDLE_MAXSIZE 128 /**< bytes that listen() may tell connect() */
#define NCCL_NET_MAX_REQUESTS 32    /**< requests that a connection must be able to have under way */
#define NCCL_NET_MAX_PLUGINS 16

/** Kinds of memory: bits of ptrSupport; HOST and CUDA also as `type` of a registration. */
#define NCCL_PTR_HOST 0x1
#define NCCL_PTR_CUDA 0x2
#define NCCL_PTR_DMABUF 0x4

/** Found in *request before irecv(): the receiver does not need to know when the data has arrived. May be ignored. */
#define NCCL_NET_OPTIONAL_RECV_COMPLETION 0x1
#define NCCL_NET_MULTI_REQUEST 0x2

#define NCCL_NET_MAX_DEVS_PER_NIC_V11 4 /**< versions 9 to 11 */
#define NCCL_NET_MAX_DEVS_PER_NIC_V12 8
#define NCCL_NET_TRAFFIC_CLASS_UNDEF -1
#define NCCL_NET_ATTR_UNDEF -1
#define NCCL_NET_ID_UNDEF -1

#define MAX_NET_SIZE (1024L * 1024L * 1024L)           /**< longest message of versions 6 to 8 */
#define MAX_COLLNET_SIZE (512L * 1024L * 1024L)        /**< largest collective of versions 6 to 8 */
#define NCCL_MAX_NET_SIZE_BYTES (1024L * MAX_NET_SIZE) /**< upper bound of maxP2pBytes and maxCollBytes */

/** Who drives a device: the host, or kernels of a kind that they must have been built for. */
typedef enum {
  NCCL_NET_DEVICE_HOST = 0,
  NCCL_NET_DEVICE_UNPACK = 1,
  NCCL_NET_DEVICE_GIN_PROXY = 2,
  NCCL_NET_DEVICE_GIN_GDAKI = 3,
  NCCL_NET_DEVICE_GIN_GPI = 4
} ncclNetDeviceType;
#define NCCL_NET_DEVICE_INVALID_VERSION 0x0
#define NCCL_NET_DEVICE_UNPACK_VERSION 0x7
#define NCCL_NET_MTU_SIZE 4096

/* ---- What the library gives to a plugin ------------------------------------------------------------------- */

typedef enum {
  NCCL_LOG_NONE = 0,
  NCCL_LOG_VERSION = 1,
  NCCL_LOG_WARN = 2, /**< also kept as the text of ncclGetLastError() */
  NCCL_LOG_INFO = 3,
  NCCL_LOG_ABORT = 4,
  NCCL_LOG_TRACE = 5
} ncclDebugLogLevel;

/** What a message is about: bits of `flags`. It is printed if NCCL_DEBUG_SUBSYS selects one of them. */
typedef enum {
  NCCL_INIT = 0x1,
  NCCL_COLL = 0x2,
  NCCL_P2P = 0x4,
  NCCL_SHM = 0x8,
  NCCL_NET = 0x10,
  NCCL_GRAPH = 0x20,
  NCCL_TUNING = 0x40,
  NCCL_ENV = 0x80,
  NCCL_ALLOC = 0x100,
  NCCL_CALL = 0x200,
  NCCL_PROXY = 0x400,
  NCCL_NVLS = 0x800,
  NCCL_BOOTSTRAP = 0x1000,
  NCCL_REG = 0x2000,
  NCCL_PROFILE = 0x4000,
  NCCL_RAS = 0x8000,
  NCCL_DESTROY = 0x10000,
  NCCL_ALLOC_HOST = 0x20000,
  NCCL_ALL = ~0
} ncclDebugLogSubSys;

/** Prints like printf. `file` and `line` are shown with WARN; with TRACE `file` is a function's name. Valid for the
 * life of the process, in any thread. */
typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                                  const char* fmt, ...);

/** `type` of a call of ncclProfilerCallback_t. */
enum {
  ncclProfilerNetEventStart = 0,
  ncclProfilerNetEventStop = 1,
  ncclProfilerNetEventUpdate = 2,
  ncclProfilerNetEventUpdateAndStop = 3
};
/** Tells a profiler what a network does. `pHandle` is isend's or irecv's `phandle` with Start, and NULL otherwise. */
typedef ncclResult_t (*ncclProfilerCallback_t)(void** eHandle, int type, void* pHandle, int64_t pluginId,
                                               void* extData);

/** Functions of the library as numbers: bit positions of ncclNetAttr `op`. */
typedef enum {
  ncclFuncBroadcast = 0,
  ncclFuncReduce = 1,
  ncclFuncAllGather = 2,
  ncclFuncReduceScatter = 3,
  ncclFuncAllReduce = 4,
  ncclFuncSendRecv = 5,
  ncclFuncSend = 6,
  ncclFuncRecv = 7,
  ncclFuncAlltoAll = 8,
  ncclFuncScatter = 9,
  ncclFuncGather = 10,
  ncclFuncAllGatherV = 11,
  ncclFuncPutSignal = 12,
  ncclFuncSignal = 13,
  ncclFuncWaitSignal = 14,
  ncclNumFuncs = 15
} ncclFunc_t;

/** Options of one communicator. Only there during the call. */
typedef struct {
  int trafficClass; /**< NCCL_NET_TRAFFIC_CLASS_UNDEF: none was asked for */
} ncclNetCommConfig_v10_t;
typedef ncclNetCommConfig_v10_t ncclNetCommConfig_v11_t;
typedef ncclNetCommConfig_v10_t ncclNetCommConfig_v12_t;

/** How connections will be used, as far as known (else NCCL_NET_ATTR_UNDEF). */
typedef struct {
  int32_t maxConcurrentPeers, minConcurrentPeers;
  int32_t maxFlowsPerPeer, minFlowsPerPeer;
} ncclNetCommAttr_v11_t;
typedef ncclNetCommAttr_v11_t ncclNetCommAttr_v12_t;
typedef struct {
  ncclNetCommAttr_v11_t sendCommAttr, recvCommAttr;
  uint32_t op, algo, proto; /**< masks; all ones: any */
} ncclNetAttr_v11_t;
typedef ncclNetAttr_v11_t ncclNetAttr_v12_t;

/** For networks that kernels drive. Networks of type NCCL_NET_DEVICE_HOST leave the pointer to it alone. */
typedef struct {
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  void* handle;
  size_t size;
  int needsProxyProgress;
} ncclNetDeviceHandle_v7_t;
typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v8_t;
typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v9_t;
typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v10_t;
typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v11_t;
typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v12_t;
typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_t;

/* ---- What a plugin says of a device ----------------------------------------------------------------------- */

/** The devices that one is made of: itself, or those that makeVDevice() joined. */
typedef struct {
  int ndevs;
  int devs[NCCL_NET_MAX_DEVS_PER_NIC_V11];
} ncclNetVDeviceProps_v9_t;
typedef ncclNetVDeviceProps_v9_t ncclNetVDeviceProps_v10_t;
typedef ncclNetVDeviceProps_v9_t ncclNetVDeviceProps_v11_t;
typedef struct {
  int ndevs;
  int devs[NCCL_NET_MAX_DEVS_PER_NIC_V12];
} ncclNetVDeviceProps_v12_t;

typedef struct {
  char* name;      /**< unique among the devices; belongs to the plugin, like pciPath */
  char* pciPath;   /**< path of the PCI function in sysfs; NULL where there is none */
  uint64_t guid;   /**< of the chip */
  int ptrSupport;  /**< NCCL_PTR_* */
  int regIsGlobal; /**< a registration is valid on all connections of the device */
  int forceFlush;  /**< iflush() is needed after every receive into GPU memory */
  int speed;       /**< Mbit/s */
  int port;        /**< devices of equal guid and port share the port's bandwidth */
  float latency;   /**< microseconds */
  int maxComms;    /**< connections */
  int maxRecvs;    /**< receives that one irecv() may post; at least 1 */
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  ncclNetVDeviceProps_v12_t vProps;
  size_t maxP2pBytes; /**< longest message: 1 to NCCL_MAX_NET_SIZE_BYTES */
  size_t maxCollBytes;
  int maxMultiRequestSize;
  int16_t railId; /**< NCCL_NET_ID_UNDEF: unknown */
  int16_t planeId;
} ncclNetProperties_v12_t;

typedef struct {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, regIsGlobal, forceFlush, speed, port;
  float latency;
  int maxComms, maxRecvs;
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  ncclNetVDeviceProps_v11_t vProps;
  size_t maxP2pBytes, maxCollBytes;
  int maxMultiRequestSize;
} ncclNetProperties_v11_t;

typedef struct {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, regIsGlobal, forceFlush, speed, port;
  float latency;
  int maxComms, maxRecvs;
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  ncclNetVDeviceProps_v9_t vProps;
  size_t maxP2pBytes, maxCollBytes;
} ncclNetProperties_v9_t;
typedef ncclNetProperties_v9_t ncclNetProperties_v10_t;

typedef struct {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, regIsGlobal, speed, port;
  float latency;
  int maxComms, maxRecvs;
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
} ncclNetProperties_v8_t;

typedef struct {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, speed, port;
  float latency;
  int maxComms, maxRecvs;
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
} ncclNetProperties_v7_t;

typedef struct {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, speed, port;
  float latency;
  int maxComms, maxRecvs;
} ncclNetProperties_v6_t;

/* ---- Signatures, each named after the version that introduced it ------------------------------------------ */

typedef ncclResult_t ncclNetInit_v6_fn(ncclDebugLogger_t log);
typedef ncclResult_t ncclNetInit_v10_fn(ncclDebugLogger_t log, ncclProfilerCallback_t profile);
/** Once per communicator. `*ctx` comes back in listen, connect, setNetAttr and finalize; commId is equal on all ranks.
 */
typedef ncclResult_t ncclNetInit_v11_fn(void** ctx, uint64_t commId, ncclNetCommConfig_v11_t* config,
                                        ncclDebugLogger_t log, ncclProfilerCallback_t profile);
typedef ncclResult_t ncclNetFinalize_v11_fn(void* ctx);
/** The number of devices. 0: the library looks for another network. */
typedef ncclResult_t ncclNetDevices_v6_fn(int* ndev);

/** Fills NCCL_NET_HANDLE_MAXSIZE bytes at `handle`, which are carried to the peer's connect() as they are. */
typedef ncclResult_t ncclNetListen_v6_fn(int dev, void* handle, void** listenComm);
typedef ncclResult_t ncclNetListen_v11_fn(void* ctx, int dev, void* handle, void** listenComm);
/** *sendComm NULL: call again with the same `handle`, in which state may be kept. */
typedef ncclResult_t ncclNetConnect_v6_fn(int dev, void* handle, void** sendComm);
typedef ncclResult_t ncclNetConnect_v7_fn(int dev, void* handle, void** sendComm, ncclNetDeviceHandle_t** sendDevComm);
typedef ncclResult_t ncclNetConnect_v10_fn(int dev, ncclNetCommConfig_v10_t* config, void* handle, void** sendComm,
                                           ncclNetDeviceHandle_t** sendDevComm);
typedef ncclResult_t ncclNetConnect_v11_fn(void* ctx, int dev, void* handle, void** sendComm,
                                           ncclNetDeviceHandle_t** sendDevComm);
/** *recvComm NULL: call again. A listener accepts one connection. */
typedef ncclResult_t ncclNetAccept_v6_fn(void* listenComm, void** recvComm);
typedef ncclResult_t ncclNetAccept_v7_fn(void* listenComm, void** recvComm, ncclNetDeviceHandle_t** recvDevComm);
typedef ncclResult_t ncclNetClose_v6_fn(void* comm);

/** *mhandle may be left NULL. */
typedef ncclResult_t ncclNetRegMr_v6_fn(void* comm, void* data, int size, int type, void** mhandle);
typedef ncclResult_t ncclNetRegMr_v8_fn(void* comm, void* data, size_t size, int type, void** mhandle);
/** The descriptor is closed by the caller afterwards. */
typedef ncclResult_t ncclNetRegMrDmaBuf_v6_fn(void* comm, void* data, size_t size, int type, uint64_t offset, int fd,
                                              void** mhandle);
typedef ncclResult_t ncclNetDeregMr_v6_fn(void* comm, void* mhandle);
typedef ncclResult_t ncclNetGetDeviceMr_v7_fn(void* comm, void* mhandle, void** dptrMhandle);

/** *request must be set on success: NULL: nothing was posted, the same call will come again. */
typedef ncclResult_t ncclNetIsend_v6_fn(void* sendComm, void* data, int size, int tag, void* mhandle, void** request);
typedef ncclResult_t ncclNetIsend_v9_fn(void* sendComm, void* data, size_t size, int tag, void* mhandle,
                                        void** request);
typedef ncclResult_t ncclNetIsend_v10_fn(void* sendComm, void* data, size_t size, int tag, void* mhandle, void* phandle,
                                         void** request);
/** Posts `n` receives as one request; sizes[i] is how much fits into data[i], tags[i] the tag of the message that
 * belongs there. A message goes into a free place of its tag in the oldest request that has not got all of its
 * messages; where there is none, isend() posts nothing. Messages of one tag keep their order. */
typedef ncclResult_t ncclNetIrecv_v6_fn(void* recvComm, int n, void** data, int* sizes, int* tags, void** mhandles,
                                        void** request);
typedef ncclResult_t ncclNetIrecv_v9_fn(void* recvComm, int n, void** data, size_t* sizes, int* tags, void** mhandles,
                                        void** request);
typedef ncclResult_t ncclNetIrecv_v10_fn(void* recvComm, int n, void** data, size_t* sizes, int* tags, void** mhandles,
                                         void** phandles, void** request);
/** Makes received data visible to the GPU. *request NULL: it is. */
typedef ncclResult_t ncclNetIflush_v6_fn(void* recvComm, int n, void** data, int* sizes, void** mhandles,
                                         void** request);
/** Writes *done every time; when done, `sizes` gets the bytes of each receive, and the request is the plugin's again.
 * `sizes` may be NULL. */
typedef ncclResult_t ncclNetTest_v6_fn(void* request, int* done, int* sizes);
typedef ncclResult_t ncclNetIrecvConsumed_v7_fn(void* recvComm, int n, void* request);

/** Joins devices into one: its number in *d. */
typedef ncclResult_t ncclNetMakeVDevice_v9_fn(int* d, ncclNetVDeviceProps_v9_t* props);
typedef ncclResult_t ncclNetMakeVDevice_v12_fn(int* d, ncclNetVDeviceProps_v12_t* props);
typedef ncclResult_t ncclNetSetNetAttr_v11_fn(void* ctx, ncclNetAttr_v11_t* netAttr);

#ifdef __cplusplus
}
#endif

#endif /* NCCL_NET_TYPES_H_ */
