/* The profiler of a mixed library, of version 4: it wants all kinds, and sums up what it has heard. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef NCCL_NO_CUDA_HEADERS
#define NCCL_NO_CUDA_HEADERS
#endif
#include "nccl_profiler.h"
#include "plugin/mixed_trace.h"

enum { kKinds = 8 }; /* bits of the mask */

typedef struct Profiler Profiler;

/* They live as long as the library: what is told of an event after its end is seen. */
typedef struct Event {
  struct Event* before;
  Profiler* of;
  struct Event* parent;
  uint8_t type;
  int open;
  int isSend;        /* a ProxyOp */
  int steps, nSteps; /* the same */
  size_t bytes;      /* a ProxyStep */
} Event;

struct Profiler {
  Profiler* before;
  TracedLife* life;
  int begun[kKinds], ended[kKinds];
  size_t sent;
  char method[48]; /* of all collectives so far */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all below, and of all events */
static Event* events;
static Profiler* profilers;

__attribute__((destructor)) static void forgetAll(void) {
  while (events != NULL) {
    Event* last = events;
    events = last->before;
    free(last);
  }
  while (profilers != NULL) {
    Profiler* last = profilers;
    profilers = last->before;
    free(last);
  }
}

static int bitOf(uint8_t type) {
  return __builtin_ctz(type);
}

static ncclResult_t init(void** context, int* mask, const char* name, uint64_t hash, int nNodes, int nRanks, int rank,
                         ncclDebugLogger_t log) {
  (void)name, (void)hash, (void)nNodes, (void)nRanks, (void)rank, (void)log;
  Profiler* made = calloc(1, sizeof *made);
  made->life = beginLife("profiler");
  pthread_mutex_lock(&mutex);
  made->before = profilers;
  profilers = made;
  pthread_mutex_unlock(&mutex);
  *context = made;
  __atomic_store_n(mask, (1 << kKinds) - 1, __ATOMIC_RELAXED);
  return ncclSuccess;
}

/* Under the mutex. */
static void noteMethod(Profiler* of, const ncclProfilerEventDescr_v4_t* e) {
  char method[48];
  snprintf(method, sizeof method, "%s/%s/%s", e->coll.func, e->coll.algo, e->coll.proto);
  if (of->method[0] == '\0') memcpy(of->method, method, sizeof method);
  if (strcmp(of->method, method) != 0) snprintf(of->method, sizeof of->method, "various");
}

static ncclResult_t startEvent(void* context, void** handle, ncclProfilerEventDescr_v4_t* e) {
  Profiler* of = context;
  enterLife(of->life, "startEvent");
  Event* made = calloc(1, sizeof *made);
  made->of = of;
  made->type = e->type;
  made->open = 1;
  pthread_mutex_lock(&mutex);
  made->before = events;
  events = made;
  ++of->begun[bitOf(e->type)];
  if (e->type == ncclProfileColl) noteMethod(of, e);
  if (e->type == ncclProfileProxyOp) {
    made->isSend = e->proxyOp.isSend;
    made->nSteps = e->proxyOp.nSteps;
  }
  if (e->type == ncclProfileProxyStep || e->type == ncclProfileNetPlugin) made->parent = e->parentObj;
  if (e->type == ncclProfileProxyStep && made->parent != NULL) ++made->parent->steps;
  pthread_mutex_unlock(&mutex);
  *handle = made;
  leaveLife(of->life);
  return ncclSuccess;
}

static ncclResult_t stopEvent(void* handle) {
  Event* event = handle;
  enterLife(event->of->life, "stopEvent");
  pthread_mutex_lock(&mutex);
  const int wasOpen = event->open;
  event->open = 0;
  ++event->of->ended[bitOf(event->type)];
  if (event->type == ncclProfileProxyStep && event->parent != NULL && event->parent->isSend) {
    event->of->sent += event->bytes;
  }
  const int missing = event->type == ncclProfileProxyOp ? event->nSteps - event->steps : 0;
  pthread_mutex_unlock(&mutex);
  if (!wasOpen) traceLine("WRONG an event of kind %d ends again", event->type);
  if (missing != 0) traceLine("WRONG a ProxyOp of %d steps lacks %d", event->nSteps, missing);
  if (event->parent != NULL && event->type == ncclProfileNetPlugin && event->parent->type != ncclProfileProxyStep) {
    traceLine("WRONG an event of the network is part of one of kind %d", event->parent->type);
  }
  leaveLife(event->of->life);
  return ncclSuccess;
}

static ncclResult_t recordEventState(void* handle, ncclProfilerEventState_v4_t state,
                                     ncclProfilerEventStateArgs_v4_t* args) {
  Event* event = handle;
  enterLife(event->of->life, "recordEventState");
  pthread_mutex_lock(&mutex);
  if (state == ncclProfilerProxyStepSendWait && args != NULL) event->bytes = args->proxyStep.transSize;
  const int isOpen = event->open;
  pthread_mutex_unlock(&mutex);
  if (!isOpen) traceLine("WRONG state %d of an event of kind %d that has ended", (int)state, event->type);
  leaveLife(event->of->life);
  return ncclSuccess;
}

static ncclResult_t finalize(void* context) {
  Profiler* of = context;
  static const char* const kNames[kKinds] = {"group", "coll", "p2p", "op", "step", "ctrl", "kernel", "net"};
  char facts[300] = "";
  pthread_mutex_lock(&mutex);
  for (int kind = 0; kind < kKinds; ++kind) {
    const size_t used = strlen(facts);
    snprintf(facts + used, sizeof facts - used, "%s=%d ", kNames[kind], of->begun[kind]);
    if (of->begun[kind] == of->ended[kind]) continue;
    snprintf(facts + used, sizeof facts - used, "%s=%d-%d-ended ", kNames[kind], of->begun[kind], of->ended[kind]);
  }
  const size_t used = strlen(facts);
  snprintf(facts + used, sizeof facts - used, "method=%s sent=%zu", of->method, of->sent);
  pthread_mutex_unlock(&mutex);
  endLife(of->life, facts);
  return ncclSuccess;
}

NCCL_PLUGIN_EXPORT extern ncclProfiler_v4_t ncclProfiler_v4;
ncclProfiler_v4_t ncclProfiler_v4 = {
    .name = "mixed profiler",
    .init = init,
    .startEvent = startEvent,
    .stopEvent = stopEvent,
    .recordEventState = recordEventState,
    .finalize = finalize,
};
