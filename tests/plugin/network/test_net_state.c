/* What a test plugin has counted and heard, and who is using it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/network/test_net_faults.h"
#include "plugin/network/test_net_parts.h"

#define EXPORTED __attribute__((visibility("default")))

enum { kContexts = 4096 };

static ncclDebugLogger_t logger;
static ncclProfilerCallback_t profiler;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of these two */
static TestNetRecord record = {.init = {.trafficClass = kNoTrafficClass}, .connect = {.trafficClass = kNoTrafficClass}};
static int isRecording;
static char contexts[2][kContexts]; /* of net and collNet: 1 where in use */

TestNetCounts testCounts;

EXPORTED TestNetCountsFunction testNetCounts;
EXPORTED TestNetRecordFunction testNetRecord;
const TestNetCounts* testNetCounts(void) {
  return &testCounts;
}
TestNetRecord testNetRecord(void) {
  const TestNetRecord copy = *beginRecord();
  recordIsDone();
  return copy;
}

void countUp(int* number, int by) {
  __atomic_fetch_add(number, by, __ATOMIC_SEQ_CST);
}

/* Not kept where nobody asks: a lock in every call would bring threads into an order that the library does not owe
 * them, and hide that from those who look for it. */
TestNetRecord* beginRecord(void) {
  static _Thread_local TestNetRecord nobodys;
  if (!isRecording) return &nobodys;
  pthread_mutex_lock(&mutex);
  return &record;
}
void recordIsDone(void) {
  if (isRecording) pthread_mutex_unlock(&mutex);
}

ncclResult_t failed(const char* call, const char* why, ncclResult_t code) {
  if (!hasFault("silent")) logger(NCCL_LOG_WARN, NCCL_NET, __FILE__, __LINE__, "test net: %s: %s", call, why);
  return hasFault("odd-code") ? (ncclResult_t)12 : code;
}
ncclResult_t toldToFail(const char* call) {
  return failed(call, "told to fail", ncclSystemError);
}

ncclResult_t tellEvent(void** event, int type, void* parent, int sends, size_t bytes) {
  TestNetEvent data = {.sends = sends, .bytes = bytes};
  return profiler(event, type, parent, kTestNetEventId, &data);
}

/* Puts settings into the environment that are not there, as networks do whose transfers want them. */
static void setSettings(const char* of) {
  if (getenv(of) == NULL) return;
  char* copy = strdup(getenv(of));
  char* rest = NULL;
  for (char* word = strtok_r(copy, ";", &rest); word != NULL; word = strtok_r(NULL, ";", &rest)) {
    char* equals = strchr(word, '=');
    if (equals != NULL) *equals = '\0';
    setenv(word, equals != NULL ? equals + 1 : "", 0);
  }
  free(copy);
}

static void* newContext(int ofCollNet) {
  char* const all = contexts[ofCollNet];
  int i = 0;
  while (i < kContexts && all[i]) ++i;
  if (i == kContexts) abort();
  all[i] = 1;
  return &all[i];
}

static int isOurs(const void* context, int ofCollNet) {
  const char* at = context;
  return at >= contexts[ofCollNet] && at < contexts[ofCollNet] + kContexts && *at;
}

int isContext(void* context, int ofCollNet) {
  pthread_mutex_lock(&mutex);
  const int ours = context == NULL || isOurs(context, ofCollNet);
  pthread_mutex_unlock(&mutex);
  if (!ours) countUp(&testCounts.strangers, 1);
  return ours;
}

ncclResult_t beginNet(int version, void** context, const uint64_t* commId, const int* trafficClass,
                      ncclDebugLogger_t log, ncclProfilerCallback_t profile) {
  /* They are always the same, and other communicators may be using them. */
  if (logger == NULL) logger = log;
  if (profiler == NULL) profiler = profile;
  readFaults(version);
  isRecording = hasFault("records");
  pthread_mutex_lock(&mutex);
  record.init.hasLog = log != NULL;
  record.init.hasProfile = profile != NULL;
  record.init.isEmpty = context == NULL || *context == NULL;
  if (commId != NULL) record.init.commId = *commId;
  if (trafficClass != NULL) record.init.trafficClass = *trafficClass;
  pthread_mutex_unlock(&mutex);
  if (faultStrikes("init")) return toldToFail("init");
  sleepAsTold("init-sleeps");
  setSettings("TEST_NET_SETS");
  countUp(&testCounts.inits, 1);
  if (context == NULL) return ncclSuccess;
  pthread_mutex_lock(&mutex);
  *context = record.init.context = newContext(0);
  pthread_mutex_unlock(&mutex);
  return ncclSuccess;
}

ncclResult_t beginCollNet(int version, void** context, const uint64_t* commId, ncclDebugLogger_t log) {
  if (logger == NULL) logger = log;
  readFaults(version);
  isRecording = hasFault("records");
  pthread_mutex_lock(&mutex);
  record.collInit.hasLog = log != NULL;
  record.collInit.isEmpty = context == NULL || *context == NULL;
  record.collInit.trafficClass = kNoTrafficClass;
  if (commId != NULL) record.collInit.commId = *commId;
  pthread_mutex_unlock(&mutex);
  if (faultStrikes("coll-init")) return toldToFail("collNet init");
  setSettings("TEST_COLLNET_SETS");
  countUp(&testCounts.collInits, 1);
  if (context == NULL) return ncclSuccess;
  pthread_mutex_lock(&mutex);
  *context = record.collInit.context = newContext(1);
  pthread_mutex_unlock(&mutex);
  return ncclSuccess;
}

static ncclResult_t end(void* context, int ofCollNet, int* count) {
  countUp(count, 1);
  if (context == NULL || !isContext(context, ofCollNet)) return ncclInternalError;
  pthread_mutex_lock(&mutex);
  *(ofCollNet ? &record.collFinalized : &record.finalized) = context;
  *(char*)context = 0;
  pthread_mutex_unlock(&mutex);
  return ncclSuccess;
}
ncclResult_t endNet(void* context) {
  return end(context, 0, &testCounts.finalizes);
}
ncclResult_t endCollNet(void* context) {
  return end(context, 1, &testCounts.collFinalizes);
}
