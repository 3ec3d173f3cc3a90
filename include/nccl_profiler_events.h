/* Part of nccl_profiler.h: what describes events. C11 and C++. */
#ifndef NCCL_PROFILER_EVENTS_H_
#define NCCL_PROFILER_EVENTS_H_

#ifndef __cplusplus
#include <stdbool.h>
#endif
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef pid_t ncclPid_t;

/* ---- Parts of descriptors that are the same in several versions ------------------------------------------------ */

/** pid: of the process that called the operation; isSend: 1: over the network to `peer`, 0: from it. */
typedef struct {
  ncclPid_t pid;
  uint8_t channelId;
  int peer;
  int nSteps;
  int chunkSize;
  int isSend;
} ncclProfilerProxyOpDescr_t;

typedef struct {
  int step;
} ncclProfilerProxyStepDescr_t;

/** pTimer: nanoseconds of the GPU's own clock. */
typedef struct {
  uint8_t channelId;
  uint64_t pTimer;
} ncclProfilerKernelChDescr_t;

/** id: the network's kind and its version of `data` (NCCL_PROFILER_NET_…). */
typedef struct {
  int64_t id;
  void* data;
} ncclProfilerNetPluginDescr_t;

/** groupDepth: 1 for a call outside of ncclGroupStart() and ncclGroupEnd(). */
typedef struct {
  bool graphCaptured;
  int groupDepth;
} ncclProfilerGroupApiDescr_t;

/** As the call was made. stream: a cudaStream_t. */
typedef struct {
  const char* func;
  size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool graphCaptured;
} ncclProfilerCollApiDescr_t;

typedef struct {
  const char* func;
  size_t count;
  const char* datatype;
  void* stream;
  bool graphCaptured;
} ncclProfilerP2pApiDescr_t;

typedef struct {
  void* stream;
} ncclProfilerKernelLaunchDescr_t;

/** As it is carried out: AllGather and Broadcast count bytes. parentGroup: the event of kind Group. */
typedef struct {
  uint64_t seqNumber; /**< of this function in the communicator, from 0 */
  const char* func;
  void const* sendBuff;
  void* recvBuff;
  size_t count;
  int root;
  const char* datatype;
  uint8_t nChannels;
  uint8_t nWarps;
  const char* algo;
  const char* proto;
  void* parentGroup;
} ncclProfilerCollDescr_v5_t;

typedef struct {
  const char* func;
  void* buff;
  const char* datatype;
  size_t count;
  int peer;
  uint8_t nChannels;
  void* parentGroup;
} ncclProfilerP2pDescr_v5_t;

/* ---- Descriptors: valid during the call, their strings for ever ------------------------------------------------ */

typedef struct {
  uint8_t type;
  void* parentObj;
  int rank;
  union {
    struct {
      const char* name;
      uint64_t commHash;
      uint64_t seqNumber;
      uint8_t func;
      void const* sendBuff;
      void* recvBuff;
      size_t count;
      int root;
      uint8_t datatype;
      uint32_t op;
      size_t trafficBytes;
      uint8_t nMaxChannels;
      uint8_t nWarps;
      uint8_t algo;
      uint8_t proto;
      int isCollnet;
      int isNvls;
    } coll;
    struct {
      const char* name;
      uint64_t commHash;
      uint8_t func;
      void* buff;
      uint8_t datatype;
      size_t count;
      int peer;
    } p2p;
    ncclProfilerProxyOpDescr_t proxyOp;
    ncclProfilerProxyStepDescr_t proxyStep;
  };
} ncclProfilerEventDescr_v1_t;

typedef struct {
  uint8_t type;
  void* parentObj;
  int rank;
  union {
    struct {
      const char* name;
      uint64_t commHash;
      uint64_t seqNumber;
      const char* func;
      void const* sendBuff;
      void* recvBuff;
      size_t count;
      int root;
      const char* datatype;
      size_t trafficBytes;
      uint8_t nMaxChannels;
      uint8_t nWarps;
      const char* algo;
      const char* proto;
    } coll;
    struct {
      const char* name;
      uint64_t commHash;
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
    } p2p;
    ncclProfilerProxyOpDescr_t proxyOp;
    ncclProfilerProxyStepDescr_t proxyStep;
  };
} ncclProfilerEventDescr_v2_t;

typedef struct {
  uint8_t type;
  void* parentObj;
  int rank;
  union {
    struct {
      const char* name;
      uint64_t commHash;
      uint64_t seqNumber;
      const char* func;
      void const* sendBuff;
      void* recvBuff;
      size_t count;
      int root;
      const char* datatype;
      uint8_t nMaxChannels;
      uint8_t nWarps;
      const char* algo;
      const char* proto;
    } coll;
    struct {
      const char* name;
      uint64_t commHash;
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
    } p2p;
    ncclProfilerProxyOpDescr_t proxyOp;
    ncclProfilerProxyStepDescr_t proxyStep;
    struct {
      uint8_t channelId;
    } kernelCh;
    ncclProfilerNetPluginDescr_t netPlugin;
  };
} ncclProfilerEventDescr_v3_t;

typedef struct {
  uint8_t type;
  void* parentObj;
  int rank;
  union {
    struct {
      uint64_t seqNumber;
      const char* func;
      void const* sendBuff;
      void* recvBuff;
      size_t count;
      int root;
      const char* datatype;
      uint8_t nChannels;
      uint8_t nWarps;
      const char* algo;
      const char* proto;
    } coll;
    struct {
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t nChannels;
    } p2p;
    ncclProfilerProxyOpDescr_t proxyOp;
    ncclProfilerProxyStepDescr_t proxyStep;
    ncclProfilerKernelChDescr_t kernelCh;
    ncclProfilerNetPluginDescr_t netPlugin;
  };
} ncclProfilerEventDescr_v4_t;

typedef struct {
  uint64_t type;
  void* parentObj;
  int rank;
  union {
    ncclProfilerGroupApiDescr_t groupApi;
    ncclProfilerCollApiDescr_t collApi;
    ncclProfilerP2pApiDescr_t p2pApi;
    ncclProfilerKernelLaunchDescr_t kernelLaunch;
    ncclProfilerCollDescr_v5_t coll;
    ncclProfilerP2pDescr_v5_t p2p;
    ncclProfilerProxyOpDescr_t proxyOp;
    ncclProfilerProxyStepDescr_t proxyStep;
    ncclProfilerKernelChDescr_t kernelCh;
    ncclProfilerNetPluginDescr_t netPlugin;
  };
} ncclProfilerEventDescr_v5_t;

/** What an event is. parentObj: the handle of the event above; rank: 0 for kinds that say GroupApi, CollApi, P2pApi,
 * KernelLaunch, Group, ProxyCtrl or KernelCh. */
typedef struct {
  uint64_t type;
  void* parentObj;
  int rank;
  union {
    ncclProfilerGroupApiDescr_t groupApi;
    ncclProfilerCollApiDescr_t collApi;
    ncclProfilerP2pApiDescr_t p2pApi;
    ncclProfilerKernelLaunchDescr_t kernelLaunch;
    ncclProfilerCollDescr_v5_t coll;
    ncclProfilerP2pDescr_v5_t p2p;
    ncclProfilerProxyOpDescr_t proxyOp;
    ncclProfilerProxyStepDescr_t proxyStep;
    ncclProfilerKernelChDescr_t kernelCh;
    ncclProfilerNetPluginDescr_t netPlugin;
    struct {
      uint64_t seqNumber;
      const char* func;
      void const* sendBuff;
      void* recvBuff;
      size_t count;
      int root;
      const char* datatype;
      const char* syncStrategy;
      bool intraBatchSync;
      uint32_t batchSize;
      uint32_t numBatches;
      uint32_t ceSeqNum;
      void* stream;
    } ceColl;
    struct {
      bool isComplete;
      int nRanks;
    } ceCollSync;
    struct {
      int numOps;
      size_t totalBytes;
      bool useIntraSync;
    } ceCollBatch;
  };
} ncclProfilerEventDescr_v6_t;

#ifdef __cplusplus
}
#endif

#endif
