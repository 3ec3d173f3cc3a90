/* What a profiler plugin and the library say to each other, versions 1 to 6. C11 and C++.
 *
 * A profiler plugin is a shared library that exports one object named ncclProfiler_v6 (or an older version's name). The
 * library takes the newest one that it finds. New plugins need only what carries the suffix _v6, or none; everything
 * else describes plugins that exist. Names, layouts and values are fixed by the programs that use them and never
 * change. docs/profiling.md says which events come when.
 *
 * Calls come from any thread of the application, from threads of the CUDA driver and of the library, at the same time.
 * An event may end on another thread than it began on, and what is below an event may begin after its end. No function
 * may call NCCL. Return codes are ignored, but for init's: after an error the communicator goes on without a
 * profiler. */
#ifndef NCCL_PROFILER_H_
#define NCCL_PROFILER_H_

#include "nccl_net_types.h" /* the logger */
#include "nccl_profiler_events.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of events: bits of the activation mask, and the `type` of a descriptor. */
enum {
  ncclProfileGroup = 1 << 0,         /**< a communicator's part of a group, as it is launched */
  ncclProfileColl = 1 << 1,          /**< a collective that is launched */
  ncclProfileP2p = 1 << 2,           /**< a message that is launched */
  ncclProfileProxyOp = 1 << 3,       /**< one operation's part in one connection over a network */
  ncclProfileProxyStep = 1 << 4,     /**< one message of that */
  ncclProfileProxyCtrl = 1 << 5,     /**< what the progress thread itself does */
  ncclProfileKernelCh = 1 << 6,      /**< one channel of a kernel; since version 3 */
  ncclProfileNetPlugin = 1 << 7,     /**< an event of a network plugin's own; since version 3 */
  ncclProfileGroupApi = 1 << 8,      /**< a group of calls; since version 5 */
  ncclProfileCollApi = 1 << 9,       /**< a call of a collective; since version 5 */
  ncclProfileP2pApi = 1 << 10,       /**< a call of ncclSend or ncclRecv; since version 5 */
  ncclProfileKernelLaunch = 1 << 11, /**< a kernel is put on its stream; since version 5 */
  ncclProfileCeColl = 1 << 12,       /**< copy engines; since version 6 */
  ncclProfileCeSync = 1 << 13,
  ncclProfileCeBatch = 1 << 14
};

/** What recordEventState() may say of an event that has begun. One numbering for all versions. */
typedef enum {
  ncclProfilerProxyOpSendPosted = 0, /**< 0 to 7: not used since version 4 */
  ncclProfilerProxyOpSendRemFifoWait = 1,
  ncclProfilerProxyOpSendTransmitted = 2,
  ncclProfilerProxyOpSendDone = 3,
  ncclProfilerProxyOpRecvPosted = 4,
  ncclProfilerProxyOpRecvReceived = 5,
  ncclProfilerProxyOpRecvTransmitted = 6,
  ncclProfilerProxyOpRecvDone = 7,
  ncclProfilerProxyStepSendGPUWait = 8,
  ncclProfilerProxyStepSendWait = 9,
  ncclProfilerProxyStepRecvWait = 10,
  ncclProfilerProxyStepRecvFlushWait = 11,
  ncclProfilerProxyStepRecvGPUWait = 12,
  ncclProfilerProxyCtrlIdle = 13,
  ncclProfilerProxyCtrlActive = 14,
  ncclProfilerProxyCtrlSleep = 15,
  ncclProfilerProxyCtrlWakeup = 16,
  ncclProfilerProxyCtrlAppend = 17,
  ncclProfilerProxyCtrlAppendEnd = 18,
  ncclProfilerProxyOpInProgress_v4 = 19,
  ncclProfilerProxyStepSendPeerWait_v4 = 20,
  ncclProfilerNetPluginUpdate = 21,
  ncclProfilerKernelChStop = 22,
  ncclProfilerGroupStartApiStop = 23,
  ncclProfilerGroupEndApiStart = 24,
  ncclProfilerCeCollStart = 25,
  ncclProfilerCeCollComplete = 26,
  ncclProfilerCeSyncStart = 27,
  ncclProfilerCeSyncComplete = 28,
  ncclProfilerCeBatchStart = 29,
  ncclProfilerCeBatchComplete = 30
} ncclProfilerEventState_t;

typedef ncclProfilerEventState_t ncclProfilerEventState_v1_t;
typedef ncclProfilerEventState_t ncclProfilerEventState_v2_t;
typedef ncclProfilerEventState_t ncclProfilerEventState_v3_t;
typedef ncclProfilerEventState_t ncclProfilerEventState_v4_t;
typedef ncclProfilerEventState_t ncclProfilerEventState_v5_t;
typedef ncclProfilerEventState_t ncclProfilerEventState_v6_t;

/* ---- What comes with a state ----------------------------------------------------------------------------------- */

typedef union {
  struct {
    size_t transSize;
    int steps;
  } proxyOp;
  struct {
    int appendedProxyOps;
  } proxyCtrl;
} ncclProfilerEventStateArgs_v1_t;
typedef ncclProfilerEventStateArgs_v1_t ncclProfilerEventStateArgs_v2_t;
typedef ncclProfilerEventStateArgs_v1_t ncclProfilerEventStateArgs_v3_t;

/** NULL with the states of GroupApi. */
typedef union {
  struct {
    size_t transSize;
  } proxyStep;
  struct {
    int appendedProxyOps;
  } proxyCtrl;
  struct {
    void* data;
  } netPlugin;
  struct {
    uint64_t pTimer;
  } kernelCh;
} ncclProfilerEventStateArgs_v4_t;
typedef ncclProfilerEventStateArgs_v4_t ncclProfilerEventStateArgs_v5_t;
typedef ncclProfilerEventStateArgs_v4_t ncclProfilerEventStateArgs_v6_t;

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

/** For every communicator. *context: its own, for startEvent() and finalize(), which is not called where it stays NULL.
 * *eActivationMask: which kinds of events are wanted, of the whole process; may be changed at any time. */
typedef ncclResult_t ncclProfilerInit_v1_fn(void** context, int* eActivationMask);
/** commName: the user's, or NULL; commHash: the same on all ranks. */
typedef ncclResult_t ncclProfilerInit_v4_fn(void** context, int* eActivationMask, const char* commName,
                                            uint64_t commHash, int nNodes, int nranks, int rank,
                                            ncclDebugLogger_t logfn);
typedef ncclResult_t ncclProfilerInit_v5_fn(void** context, uint64_t commId, int* eActivationMask, const char* commName,
                                            int nNodes, int nranks, int rank, ncclDebugLogger_t logfn);
typedef ncclResult_t ncclProfilerStopEvent_fn(void* eHandle);
typedef ncclResult_t ncclProfilerFinalize_fn(void* context);

typedef struct {
  const char* name;
  ncclProfilerInit_v1_fn* init;
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v1_t* eDescr);
  ncclProfilerStopEvent_fn* stopEvent;
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_v1_t eState,
                                   ncclProfilerEventStateArgs_v1_t* eStateArgs);
  ncclProfilerFinalize_fn* finalize;
} ncclProfiler_v1_t;

typedef struct {
  const char* name;
  ncclProfilerInit_v1_fn* init;
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v2_t* eDescr);
  ncclProfilerStopEvent_fn* stopEvent;
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_v2_t eState,
                                   ncclProfilerEventStateArgs_v2_t* eStateArgs);
  ncclProfilerFinalize_fn* finalize;
} ncclProfiler_v2_t;

typedef struct {
  const char* name;
  ncclProfilerInit_v1_fn* init;
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v3_t* eDescr);
  ncclProfilerStopEvent_fn* stopEvent;
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_v3_t eState,
                                   ncclProfilerEventStateArgs_v3_t* eStateArgs);
  ncclProfilerFinalize_fn* finalize;
} ncclProfiler_v3_t;

typedef struct {
  const char* name;
  ncclProfilerInit_v4_fn* init;
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v4_t* eDescr);
  ncclProfilerStopEvent_fn* stopEvent;
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_v4_t eState,
                                   ncclProfilerEventStateArgs_v4_t* eStateArgs);
  ncclProfilerFinalize_fn* finalize;
} ncclProfiler_v4_t;

typedef struct {
  const char* name;
  ncclProfilerInit_v5_fn* init;
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v5_t* eDescr);
  ncclProfilerStopEvent_fn* stopEvent;
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_v5_t eState,
                                   ncclProfilerEventStateArgs_v5_t* eStateArgs);
  ncclProfilerFinalize_fn* finalize;
} ncclProfiler_v5_t;

/** startEvent: *eHandle, which is NULL before, stays so where the event is of no interest: then nothing more is said of
 * it. */
typedef struct {
  const char* name;
  ncclProfilerInit_v5_fn* init;
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v6_t* eDescr);
  ncclProfilerStopEvent_fn* stopEvent;
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_v6_t eState,
                                   ncclProfilerEventStateArgs_v6_t* eStateArgs);
  ncclProfilerFinalize_fn* finalize;
} ncclProfiler_v6_t;

/* ---- Events of networks ------------------------------------------------------------------------------------------ */

#define NCCL_PROFILER_NET_VER_BITS 16
#define NCCL_PROFILER_NET_VER_MASK (~0U >> NCCL_PROFILER_NET_VER_BITS)
#define NCCL_PROFILER_NET_TYPE_MASK (~0U << NCCL_PROFILER_NET_VER_BITS)

typedef enum { NCCL_PROFILER_NET_TYPE_IB = 1 << 16, NCCL_PROFILER_NET_TYPE_SOCK = 2 << 16 } ncclProfilerNetType;

/** `data` of the built-in networks' events, which this library's do not send. type: ncclProfileQp. */
#define NCCL_PROFILER_NET_IB_VER 1
enum { ncclProfileQp = 1 << 0 };
typedef struct {
  uint8_t type;
  union {
    struct {
      int device;
      uint64_t wr_id;
      int opcode;
      int qpNum;
      size_t length;
    } qp;
  };
} ncclProfilerNetIbDescr_v1_t;

/** type: ncclProfileSocket. */
#define NCCL_PROFILER_NET_SOCKET_VER 1
enum { ncclProfileSocket = 1 << 0 };
typedef struct {
  uint8_t type;
  union {
    struct {
      int fd;
      int op;
      size_t length;
    } sock;
  };
} ncclProfilerNetSockDescr_v1_t;

#ifdef __cplusplus
}
#endif

#endif
