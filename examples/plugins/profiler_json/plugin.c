/* profiler_json: a profiler plugin that writes what it is told as a time line, for chrome://tracing or Perfetto.
   README.md explains it. */
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef NCCL_NO_CUDA_HEADERS
#define NCCL_NO_CUDA_HEADERS
#endif
#include "nccl_profiler.h"

enum { kMostStates = 4, kKept = 1 << 14, kDeviceThread = 1 << 30 };

/** A communicator. */
typedef struct {
  int rank;
  uint64_t channels; /**< whose thread on the device has its name in the file; under `lock` */
} Context;

/** An event. Those below it may begin after its end, so it stays until kKept others have ended as well, and then until
    all below it have gone. What is captured in a graph stays to the end: every replay may name it. */
typedef struct Event {
  struct Event* parent; /**< NULL: none in this process */
  long users;           /**< itself and the events below it; under `lock` */
  int captured;
  struct Event* next;
  unsigned long id;
  const char* kind;
  int rank;
  pid_t thread;      /**< of a kernel's channel: kDeviceThread and its number */
  double begin, end; /**< microseconds, by this process's clock */
  uint64_t timer;    /**< KernelCh: when it began by the device's clock, in nanoseconds */
  char text[160];    /**< JSON: what else the descriptor says */
  int nStates;
  struct {
    int state;
    double at;
    size_t bytes;
  } states[kMostStates];
} Event;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE* file;    /* while there are communicators */
static int nContexts; /* under `lock`, like the rest */
static int nFiles;
static unsigned long nEvents;
static Event* ended[kKept]; /* the last ones, in a ring */
static unsigned long nEnded;
static Event* captured;             /* ended as well; a list by Event::next */
static double deviceOffset = 1e300; /* from the device's clock to this process's, in microseconds */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t); /* so that several processes' files go together */
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/** Opens the file for the first communicator; 0: it cannot be opened. */
static int openFile(ncclDebugLogger_t log) {
  if (nContexts > 0) return 1;
  const char* prefix = getenv("PROFILER_JSON_PREFIX");
  char name[512];
  snprintf(name, sizeof(name), "%s.%d.%d.json", prefix != NULL && prefix[0] != '\0' ? prefix : "nccl", (int)getpid(),
           nFiles++);
  file = fopen(name, "w");
  if (file == NULL) {
    log(NCCL_LOG_WARN, NCCL_PROFILE, __FILE__, __LINE__, "profiler_json: %s cannot be written", name);
    return 0;
  }
  fputs("[\n", file);
  log(NCCL_LOG_INFO, NCCL_INIT, __FILE__, __LINE__, "profiler_json: writes %s", name);
  return 1;
}

/** Somebody needs it no more. */
static void release(Event* event) {
  while (event != NULL && --event->users == 0) {
    Event* const parent = event->parent;
    free(event);
    event = parent;
  }
}

static void closeFile(void) {
  for (int i = 0; i < kKept; ++i) {
    release(ended[i]);
    ended[i] = NULL;
  }
  while (captured != NULL) {
    Event* const event = captured;
    captured = event->next;
    release(event);
  }
  fputs("{}]\n", file);
  fclose(file);
  file = NULL;
}

static ncclResult_t init(void** context, uint64_t commId, int* eActivationMask, const char* commName, int nNodes,
                         int nranks, int rank, ncclDebugLogger_t log) {
  Context* mine = calloc(1, sizeof(*mine));
  if (mine == NULL) return ncclSystemError;
  mine->rank = rank;
  pthread_mutex_lock(&lock);
  const int opened = openFile(log);
  if (opened) {
    ++nContexts;
    fprintf(file,
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"rank %d of %d on %d nodes, %s "
            "%llx\"}},\n",
            rank, rank, nranks, nNodes, commName != NULL ? commName : "communicator", (unsigned long long)commId);
  }
  pthread_mutex_unlock(&lock);
  if (!opened) {
    free(mine);
    return ncclSystemError; /* the library goes on without this plugin */
  }
  *context = mine;
  const char* mask = getenv("PROFILER_JSON_MASK");
  /* Other communicators' events read the same word. */
  __atomic_store_n(eActivationMask, mask != NULL ? (int)strtol(mask, NULL, 0) : ~ncclProfileProxyCtrl & 0x7fff,
                   __ATOMIC_RELAXED);
  return ncclSuccess;
}

static ncclResult_t finalize(void* context) {
  free(context);
  pthread_mutex_lock(&lock);
  if (--nContexts == 0) closeFile();
  pthread_mutex_unlock(&lock);
  return ncclSuccess;
}

static const char* kindOf(uint64_t type) {
  static const char* const kKinds[] = {"Group",     "Coll",     "P2p",     "ProxyOp", "ProxyStep",
                                       "ProxyCtrl", "KernelCh", "Network", "Group",   "Call",
                                       "Call",      "Launch",   "CeColl",  "CeSync",  "CeBatch"};
  const int bit = __builtin_ctzll(type | 1ULL << 14);
  return kKinds[bit];
}

__attribute__((format(printf, 2, 3))) static void describe(Event* event, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(event->text, sizeof(event->text), format, arguments);
  va_end(arguments);
}

static void describeEvent(Event* event, const ncclProfilerEventDescr_v6_t* e) {
  switch (e->type) {
    case ncclProfileColl:
      describe(event, ",\"func\":\"%s\",\"number\":%llu,\"count\":%zu,\"algorithm\":\"%s\",\"protocol\":\"%s\"",
               e->coll.func, (unsigned long long)e->coll.seqNumber, e->coll.count, e->coll.algo, e->coll.proto);
      return;
    case ncclProfileP2p:
      describe(event, ",\"func\":\"%s\",\"peer\":%d,\"count\":%zu", e->p2p.func, e->p2p.peer, e->p2p.count);
      return;
    case ncclProfileGroupApi:
      event->captured = e->groupApi.graphCaptured;
      return;
    case ncclProfileCollApi:
      event->captured = e->collApi.graphCaptured;
      describe(event, ",\"func\":\"%s\",\"count\":%zu", e->collApi.func, e->collApi.count);
      return;
    case ncclProfileP2pApi:
      event->captured = e->p2pApi.graphCaptured;
      describe(event, ",\"func\":\"%s\",\"count\":%zu", e->p2pApi.func, e->p2pApi.count);
      return;
    case ncclProfileProxyOp:
      describe(event, ",\"%s\":%d,\"channel\":%d,\"steps\":%d", e->proxyOp.isSend ? "to" : "from", e->proxyOp.peer,
               e->proxyOp.channelId, e->proxyOp.nSteps);
      return;
    case ncclProfileProxyStep:
      describe(event, ",\"step\":%d", e->proxyStep.step);
      return;
    case ncclProfileKernelCh:
      event->timer = e->kernelCh.pTimer;
      event->thread = kDeviceThread + e->kernelCh.channelId;
      describe(event, ",\"channel\":%d", e->kernelCh.channelId);
      return;
    default:
      return;
  }
}

/** When the device's clock said so, by this process's. Nothing is told before it is: the least difference between the
    two that was seen is the nearest. `lock` is held. */
static double atDevice(uint64_t timer) {
  const double its = (double)timer / 1e3;
  const double offset = now() - its;
  if (offset < deviceOffset) deviceOffset = offset;
  return its + deviceOffset;
}

/** Names the channel's thread on the device. `lock` is held. */
static void nameChannel(Context* mine, int channel) {
  if ((mine->channels >> channel & 1) != 0) return;
  mine->channels |= 1ULL << channel;
  fprintf(file,
          "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"device, channel %d\"}},\n",
          mine->rank, kDeviceThread + channel, channel);
}

static ncclResult_t startEvent(void* context, void** eHandle, ncclProfilerEventDescr_v6_t* e) {
  Event* event = calloc(1, sizeof(*event));
  if (event == NULL) return ncclSystemError;
  event->users = 1;
  event->kind = kindOf(e->type);
  /* Only some descriptors say the rank. The context is another process's where the proxy works for that. */
  const int foreign = e->type == ncclProfileProxyOp && e->proxyOp.pid != getpid();
  event->rank = foreign ? e->rank : ((Context*)context)->rank;
  event->parent = foreign ? NULL : e->parentObj;
  event->thread = gettid();
  describeEvent(event, e);
  pthread_mutex_lock(&lock);
  event->id = ++nEvents;
  if (event->parent != NULL) ++event->parent->users;
  event->begin = event->timer != 0 ? atDevice(event->timer) : now();
  if (event->timer != 0) nameChannel(context, event->thread - kDeviceThread);
  pthread_mutex_unlock(&lock);
  *eHandle = event;
  return ncclSuccess;
}

static ncclResult_t recordEventState(void* eHandle, ncclProfilerEventState_v6_t state,
                                     ncclProfilerEventStateArgs_v6_t* args) {
  Event* event = eHandle;
  if (state == ncclProfilerKernelChStop) {
    event->end = event->begin + (double)(args->kernelCh.pTimer - event->timer) / 1e3;
    return ncclSuccess;
  }
  if (event->nStates == kMostStates) return ncclSuccess;
  const int ofStep = state <= ncclProfilerProxyStepRecvGPUWait || state == ncclProfilerProxyStepSendPeerWait_v4;
  event->states[event->nStates].state = (int)state;
  event->states[event->nStates].at = now();
  event->states[event->nStates++].bytes = ofStep && args != NULL ? args->proxyStep.transSize : 0;
  return ncclSuccess;
}

static void writeEvent(const Event* event) {
  fprintf(file, "{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"id\":%lu",
          event->kind, event->rank, (int)event->thread, event->begin, event->end - event->begin, event->id);
  if (event->parent != NULL) fprintf(file, ",\"parent\":%lu", event->parent->id);
  fputs(event->text, file);
  for (int i = 0; i < event->nStates; ++i) {
    fprintf(file, ",\"state %d\":\"%.3f us", event->states[i].state, event->states[i].at - event->begin);
    if (event->states[i].bytes > 0) fprintf(file, ", %zu bytes", event->states[i].bytes);
    fputs("\"", file);
  }
  fputs("}},\n", file);
}

static ncclResult_t stopEvent(void* eHandle) {
  Event* event = eHandle;
  if (event->end == 0) event->end = now(); /* a kernel's channel has said it */
  pthread_mutex_lock(&lock);
  writeEvent(event);
  if (event->captured) {
    event->next = captured;
    captured = event;
  } else {
    Event** const place = &ended[nEnded++ % kKept];
    release(*place);
    *place = event;
  }
  pthread_mutex_unlock(&lock);
  return ncclSuccess;
}

extern NCCL_PLUGIN_EXPORT ncclProfiler_v6_t ncclProfiler_v6;
ncclProfiler_v6_t ncclProfiler_v6 = {
    .name = "json",
    .init = init,
    .startEvent = startEvent,
    .stopEvent = stopEvent,
    .recordEventState = recordEventState,
    .finalize = finalize,
};
