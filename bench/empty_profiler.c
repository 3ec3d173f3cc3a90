/* A profiler plugin that takes every event and does nothing, for bench/profiler_cost.py. EMPTY_PROFILER_MASK: which. */
#include <stdlib.h>

#ifndef NCCL_NO_CUDA_HEADERS
#define NCCL_NO_CUDA_HEADERS
#endif
#include "nccl_profiler.h"

static int something;

static ncclResult_t init(void** context, uint64_t commId, int* eActivationMask, const char* commName, int nNodes,
                         int nranks, int rank, ncclDebugLogger_t log) {
  (void)commId, (void)commName, (void)nNodes, (void)nranks, (void)rank, (void)log;
  const char* mask = getenv("EMPTY_PROFILER_MASK");
  *context = &something;
  __atomic_store_n(eActivationMask, mask == NULL ? 0x7fff : (int)strtol(mask, NULL, 0), __ATOMIC_RELAXED);
  return ncclSuccess;
}

static ncclResult_t startEvent(void* context, void** eHandle, ncclProfilerEventDescr_v6_t* e) {
  (void)context, (void)e;
  *eHandle = &something;
  return ncclSuccess;
}

static ncclResult_t stopEvent(void* eHandle) {
  (void)eHandle;
  return ncclSuccess;
}

static ncclResult_t recordEventState(void* eHandle, ncclProfilerEventState_v6_t state,
                                     ncclProfilerEventStateArgs_v6_t* args) {
  (void)eHandle, (void)state, (void)args;
  return ncclSuccess;
}

static ncclResult_t finalize(void* context) {
  (void)context;
  return ncclSuccess;
}

extern NCCL_PLUGIN_EXPORT ncclProfiler_v6_t ncclProfiler_v6;
ncclProfiler_v6_t ncclProfiler_v6 = {
    .name = "empty",
    .init = init,
    .startEvent = startEvent,
    .stopEvent = stopEvent,
    .recordEventState = recordEventState,
    .finalize = finalize,
};
