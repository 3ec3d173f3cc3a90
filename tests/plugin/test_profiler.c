/* A profiler of version TEST_PROFILER_VERSION that remembers every call. */
#include "test_profiler.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef NCCL_NO_CUDA_HEADERS
#define NCCL_NO_CUDA_HEADERS
#endif
#include "nccl_profiler.h"

#define V TEST_PROFILER_VERSION
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define VERSIONED(name) JOIN(JOIN(name, _v), JOIN(V, _t))

typedef VERSIONED(ncclProfilerEventDescr) Descriptor;

enum { kMost = TEST_PROFILER_MOST, kMostLiving = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TestProfilerRecord records[kMost];
static int nRecords;
static TestProfilerRecord living[kMostLiving]; /* the inits of contexts that have not ended */
static int nLiving;
static long nHandles;
static int nContexts;
static int nInits; /* since the last reset */
static int wanted;
static int* mask;
static int failInit, giveNoHandles, failAll;

static FILE* file; /* from the first init on, where TEST_PROFILER_FILE says so */

/* Under the lock. */
static void followLives(const TestProfilerRecord* record) {
  if (record->context == 0) return;
  if (strcmp(record->call, "init") == 0 && record->type == ncclSuccess && nLiving < kMostLiving) {
    living[nLiving++] = *record;
  }
  if (strcmp(record->call, "finalize") != 0) return;
  for (int i = 0; i < nLiving; ++i) {
    if (living[i].context == record->context) living[i--] = living[--nLiving];
  }
}

static void put(TestProfilerRecord* record) {
  record->version = V;
  pthread_mutex_lock(&lock);
  followLives(record);
  if (file != NULL) {
    fprintf(file, "%s\t%d\t%ld\t%ld\t%ld\t%d\t%s\n", record->call, record->context, record->type, record->handle,
            record->parent, record->rank, record->text);
    fflush(file);
  } else if (nRecords < kMost) {
    records[nRecords++] = *record;
  }
  pthread_mutex_unlock(&lock);
}

static ncclResult_t result(void) {
  return failAll ? ncclInternalError : ncclSuccess;
}

NCCL_PLUGIN_EXPORT TestProfilerReset_fn testProfilerWant;
void testProfilerWant(int newMask) {
  pthread_mutex_lock(&lock);
  wanted = newMask;
  if (mask != NULL) __atomic_store_n(mask, newMask, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&lock);
}

NCCL_PLUGIN_EXPORT TestProfilerReset_fn testProfilerReset;
void testProfilerReset(int newMask) {
  pthread_mutex_lock(&lock);
  memcpy(records, living, sizeof(*living) * (size_t)nLiving);
  nRecords = nLiving;
  nInits = 0;
  pthread_mutex_unlock(&lock);
  testProfilerWant(newMask);
}

NCCL_PLUGIN_EXPORT TestProfilerRead_fn testProfilerRead;
int testProfilerRead(TestProfilerRecord* to, int room) {
  pthread_mutex_lock(&lock);
  const int n = nRecords < room ? nRecords : room;
  memcpy(to, records, sizeof(*to) * (size_t)n);
  const int all = nRecords;
  pthread_mutex_unlock(&lock);
  return all;
}

NCCL_PLUGIN_EXPORT TestProfilerFail_fn testProfilerFail;
void testProfilerFail(int initCode, int silent, int bare) {
  failInit = initCode;
  giveNoHandles = silent;
  failAll = bare;
}

static ncclResult_t begin(void** context, int* itsMask, const char* name, uint64_t commId, int nNodes, int nRanks,
                          int rank) {
  TestProfilerRecord record = {.call = "init", .rank = rank};
  snprintf(record.text, sizeof(record.text), "name=%s hasId=%d nodes=%d ranks=%d", name == NULL ? "NULL" : name,
           commId != 0, nNodes, nRanks);
  pthread_mutex_lock(&lock);
  record.type = failInit;
  const char* refused = getenv("TEST_PROFILER_REFUSES");
  if (refused != NULL && atoi(refused) == ++nInits) record.type = ncclSystemError;
  if (getenv("TEST_PROFILER_NO_CONTEXT") == NULL) record.context = ++nContexts;
  mask = itsMask;
  const char* prefix = getenv("TEST_PROFILER_FILE");
  if (prefix != NULL && file == NULL) {
    char path[512];
    snprintf(path, sizeof(path), "%s.%d", prefix, (int)getpid());
    file = fopen(path, "w");
    const char* kinds = getenv("TEST_PROFILER_MASK");
    wanted = kinds == NULL ? 0 : (int)strtol(kinds, NULL, 0);
  }
  pthread_mutex_unlock(&lock);
  put(&record);
  const char* protocol = getenv("TEST_PROFILER_PROTO");
  if (protocol != NULL) setenv("NCCL_PROTO", protocol, 1);
  if (getenv("TEST_PROFILER_SLEEPS") != NULL) sleep(600);
  if (record.type != ncclSuccess) return (ncclResult_t)record.type;
  if (record.context != 0) *context = (void*)(intptr_t)record.context;
  pthread_mutex_lock(&lock);
  __atomic_store_n(itsMask, wanted, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&lock);
  return ncclSuccess;
}

#if V <= 3
static ncclResult_t init(void** context, int* itsMask) {
  return begin(context, itsMask, NULL, 0, 0, 0, -1);
}
#elif V == 4
static ncclResult_t init(void** context, int* itsMask, const char* name, uint64_t hash, int nNodes, int nRanks,
                         int rank, ncclDebugLogger_t log) {
  log(NCCL_LOG_INFO, NCCL_INIT, "", 0, "test profiler");
  return begin(context, itsMask, name, hash, nNodes, nRanks, rank);
}
#else
static ncclResult_t init(void** context, uint64_t commId, int* itsMask, const char* name, int nNodes, int nRanks,
                         int rank, ncclDebugLogger_t log) {
  log(NCCL_LOG_INFO, NCCL_INIT, "", 0, "test profiler");
  return begin(context, itsMask, name, commId, nNodes, nRanks, rank);
}
#endif

#if V <= 3
/* Of which communicator. */
static void putComm(const char* name, uint64_t hash, char* text, size_t room) {
  const size_t used = strlen(text);
  snprintf(text + used, room - used, " name=%s hash=%llx", name == NULL ? "NULL" : name, (unsigned long long)hash);
}
#endif

static void describeColl(const Descriptor* e, char* text, size_t room) {
#if V == 1
  snprintf(text, room, "seq=%d func=%d count=%zu root=%d type=%d channels=%d warps=%d algo=%d proto=%d",
           (int)e->coll.seqNumber, e->coll.func, e->coll.count, e->coll.root, e->coll.datatype, e->coll.nMaxChannels,
           e->coll.nWarps, e->coll.algo, e->coll.proto);
#else
#if V <= 3
  const int channels = e->coll.nMaxChannels;
#else
  const int channels = e->coll.nChannels;
#endif
  snprintf(text, room, "seq=%d func=%s count=%zu root=%d type=%s channels=%d warps=%d algo=%s proto=%s",
           (int)e->coll.seqNumber, e->coll.func, e->coll.count, e->coll.root, e->coll.datatype, channels,
           e->coll.nWarps, e->coll.algo, e->coll.proto);
#endif
  const size_t used = strlen(text);
  snprintf(text + used, room - used, " send=%p recv=%p", e->coll.sendBuff, e->coll.recvBuff);
#if V <= 3
  putComm(e->coll.name, e->coll.commHash, text, room);
#endif
#if V <= 2
  const size_t traffic = strlen(text);
  snprintf(text + traffic, room - traffic, " traffic=%zu", e->coll.trafficBytes);
#endif
#if V == 1
  const size_t first = strlen(text);
  snprintf(text + first, room - first, " op=%u collnet=%d nvls=%d", e->coll.op, e->coll.isCollnet, e->coll.isNvls);
#endif
#if V >= 5
  const size_t more = strlen(text);
  snprintf(text + more, room - more, " group=%ld", (long)(intptr_t)e->coll.parentGroup);
#endif
}

static void describeP2p(const Descriptor* e, char* text, size_t room) {
#if V == 1
  snprintf(text, room, "func=%d count=%zu peer=%d type=%d buff=%p", e->p2p.func, e->p2p.count, e->p2p.peer,
           e->p2p.datatype, e->p2p.buff);
#else
  snprintf(text, room, "func=%s count=%zu peer=%d type=%s buff=%p", e->p2p.func, e->p2p.count, e->p2p.peer,
           e->p2p.datatype, e->p2p.buff);
#endif
#if V <= 3
  putComm(e->p2p.name, e->p2p.commHash, text, room);
#endif
#if V >= 4
  const size_t used = strlen(text);
  snprintf(text + used, room - used, " channels=%d", e->p2p.nChannels);
#endif
#if V >= 5
  const size_t more = strlen(text);
  snprintf(text + more, room - more, " group=%ld", (long)(intptr_t)e->p2p.parentGroup);
#endif
}

static void describe(const Descriptor* e, char* text, size_t room) {
  switch ((int)e->type) {
    case ncclProfileColl:
      describeColl(e, text, room);
      return;
    case ncclProfileP2p:
      describeP2p(e, text, room);
      return;
    case ncclProfileProxyOp:
      snprintf(text, room, "pid=%d channel=%d peer=%d steps=%d chunk=%d send=%d", (int)e->proxyOp.pid,
               e->proxyOp.channelId, e->proxyOp.peer, e->proxyOp.nSteps, e->proxyOp.chunkSize, e->proxyOp.isSend);
      return;
    case ncclProfileProxyStep:
      snprintf(text, room, "step=%d", e->proxyStep.step);
      return;
#if V == 3
    case ncclProfileKernelCh:
      snprintf(text, room, "channel=%d", e->kernelCh.channelId);
      return;
#elif V >= 4
    case ncclProfileKernelCh:
      snprintf(text, room, "channel=%d timer=%lu", e->kernelCh.channelId, (unsigned long)e->kernelCh.pTimer);
      return;
#endif
#if V >= 3
    case ncclProfileNetPlugin:
      snprintf(text, room, "id=%d data=%p", (int)e->netPlugin.id, e->netPlugin.data);
      return;
#endif
#if V >= 5
    case ncclProfileGroupApi:
      snprintf(text, room, "captured=%d depth=%d", e->groupApi.graphCaptured, e->groupApi.groupDepth);
      return;
    case ncclProfileCollApi:
      snprintf(text, room, "func=%s count=%zu type=%s root=%d stream=%p captured=%d", e->collApi.func, e->collApi.count,
               e->collApi.datatype, e->collApi.root, e->collApi.stream, e->collApi.graphCaptured);
      return;
    case ncclProfileP2pApi:
      snprintf(text, room, "func=%s count=%zu type=%s stream=%p captured=%d", e->p2pApi.func, e->p2pApi.count,
               e->p2pApi.datatype, e->p2pApi.stream, e->p2pApi.graphCaptured);
      return;
    case ncclProfileKernelLaunch:
      snprintf(text, room, "stream=%p", e->kernelLaunch.stream);
      return;
#endif
    default:
      return;
  }
}

static ncclResult_t startEvent(void* context, void** handle, Descriptor* e) {
  TestProfilerRecord record = {.call = "start",
                               .context = (int)(intptr_t)context,
                               .type = (long)e->type,
                               .parent = (long)(intptr_t)e->parentObj,
                               .rank = e->rank};
  describe(e, record.text, sizeof(record.text));
  if (*handle != NULL) snprintf(record.text, sizeof(record.text), "the handle was not NULL");
  if (!giveNoHandles) {
    record.handle = __atomic_add_fetch(&nHandles, 1, __ATOMIC_RELAXED);
    *handle = (void*)(intptr_t)record.handle;
  }
  put(&record);
  return result();
}

static ncclResult_t stopEvent(void* handle) {
  TestProfilerRecord record = {.call = "stop", .handle = (long)(intptr_t)handle};
  put(&record);
  return result();
}

static ncclResult_t recordEventState(void* handle, VERSIONED(ncclProfilerEventState) state,
                                     VERSIONED(ncclProfilerEventStateArgs) * args) {
  TestProfilerRecord record = {.call = "state", .type = (long)state, .handle = (long)(intptr_t)handle};
  if (args != NULL && state >= ncclProfilerProxyCtrlIdle && state <= ncclProfilerProxyCtrlAppendEnd) {
    snprintf(record.text, sizeof(record.text), "appended=%d", args->proxyCtrl.appendedProxyOps);
  }
#if V >= 4
  const int ofStep = state >= ncclProfilerProxyStepSendGPUWait && state <= ncclProfilerProxyStepRecvGPUWait;
  if (args != NULL && (ofStep || state == ncclProfilerProxyStepSendPeerWait_v4)) {
    snprintf(record.text, sizeof(record.text), "size=%zu", args->proxyStep.transSize);
  }
  if (args != NULL && state == ncclProfilerKernelChStop) {
    snprintf(record.text, sizeof(record.text), "timer=%lu", (unsigned long)args->kernelCh.pTimer);
  }
  if (args != NULL && state == ncclProfilerNetPluginUpdate) {
    snprintf(record.text, sizeof(record.text), "data=%p", args->netPlugin.data);
  }
#endif
  put(&record);
  return result();
}

static ncclResult_t finalize(void* context) {
  TestProfilerRecord record = {.call = "finalize", .context = (int)(intptr_t)context};
  put(&record);
  return result();
}

extern NCCL_PLUGIN_EXPORT VERSIONED(ncclProfiler) JOIN(ncclProfiler_v, V);
VERSIONED(ncclProfiler)
JOIN(ncclProfiler_v, V) = {
    .name = "TestProfiler",
    .init = init,
    .startEvent = startEvent,
    .stopEvent = stopEvent,
    .recordEventState = recordEventState,
    .finalize = finalize,
};
