/* A tuner plugin of version TEST_TUNER_VERSION; test_tuner.h says what it does. */
#include "plugin/test_tuner.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kContexts = 256 };

typedef struct {
  int used;
  char rules[256];
  ncclDebugLogger_t log;
} Context;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static TestTunerRecord record;
static Context contexts[kContexts];

NCCL_PLUGIN_EXPORT TestTunerRecordFunction testTunerRecord;
TestTunerRecord testTunerRecord(void) {
  pthread_mutex_lock(&mutex);
  const TestTunerRecord copy = record;
  pthread_mutex_unlock(&mutex);
  return copy;
}

/* The text behind "name" in the rules, up to the next comma: "" for a word alone; NULL: it is not there. */
static const char* ruleOf(const Context* of, const char* name) {
  const size_t length = strlen(name);
  for (const char* at = of->rules; at != NULL; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, name, length) != 0) continue;
    if (at[length] == '=') return at + length + 1;
    if (at[length] == '\0' || at[length] == ',') return "";
  }
  return NULL;
}

static int pairOf(const Context* of, const char* name, int* algorithm, int* protocol) {
  const char* text = ruleOf(of, name);
  return text != NULL && sscanf(text, "%d/%d", algorithm, protocol) == 2;
}

static ncclResult_t resultOf(const Context* of, const char* call) {
  if (ruleOf(of, call) == NULL) return ncclSuccess;
  if (ruleOf(of, "silent") == NULL) of->log(NCCL_LOG_WARN, NCCL_TUNING, __FILE__, __LINE__, "%s went wrong", call);
  return ruleOf(of, "odd-code") != NULL ? (ncclResult_t)77 : ncclSystemError;
}

/* Under the mutex; NULL: it is not one of ours. */
static const Context* known(void* context) {
  const Context* of = context;
  if (of >= contexts && of < contexts + kContexts && of->used) return of;
  ++record.strangers;
  return NULL;
}

/* Under the mutex. */
static void takeRules(Context* of, int number) {
  const char* rules = getenv("TEST_TUNER");
  snprintf(of->rules, sizeof of->rules, "%s", rules != NULL ? rules : "");
  char* others = strchr(of->rules, '|');
  if (others == NULL) return;
  *others = '\0';
  if (number % 2 == 1) memmove(of->rules, others + 1, strlen(others + 1) + 1);
}

static ncclResult_t begin(size_t nRanks, size_t nNodes, ncclDebugLogger_t log, void** context,
                          ncclTunerConstants_v5_t* constants) {
  Context* of = contexts;
  while (of->used) ++of;
  takeRules(of, record.inits++);
  of->log = log;
  record.nRanks = nRanks;
  record.nNodes = nNodes;
  const ncclResult_t result = resultOf(of, "init");
  if (result != ncclSuccess) return result;
  if (ruleOf(of, "sleeps") != NULL) sleep(600);
  char name[16];
  const char* protocol = ruleOf(of, "proto");
  if (protocol != NULL && sscanf(protocol, "%15[^,]", name) == 1) setenv("NCCL_PROTO", name, 1);
  of->used = 1;
  *context = of;
  if (constants == NULL) return ncclSuccess;
  record.constants = *constants;
  int a, p;
  double value;
  const char* base = ruleOf(of, "base");
  if (base != NULL && sscanf(base, "%d/%d/%lf", &a, &p, &value) == 3) {
    constants->baseLatencies[a][p] = value;
  }
  double* all = (double*)constants;
  for (size_t i = 0; ruleOf(of, "twice") != NULL && i < sizeof *constants / sizeof *all; ++i) all[i] *= 2;
  return ncclSuccess;
}

#if TEST_TUNER_VERSION >= 5
static ncclResult_t init(void** context, uint64_t commId, size_t nRanks, size_t nNodes, ncclDebugLogger_t log,
                         ncclNvlDomainInfo_v5_t* domains, ncclTunerConstants_v5_t* constants) {
  pthread_mutex_lock(&mutex);
  record.commId = commId;
  record.domains = *domains;
  const ncclResult_t result = begin(nRanks, nNodes, log, context, constants);
  pthread_mutex_unlock(&mutex);
  return result;
}
#else
static ncclResult_t init(size_t nRanks, size_t nNodes, ncclDebugLogger_t log, void** context) {
  pthread_mutex_lock(&mutex);
  const ncclResult_t result = begin(nRanks, nNodes, log, context, NULL);
  pthread_mutex_unlock(&mutex);
  return result;
}
#endif

static ncclResult_t end(void* context) {
  pthread_mutex_lock(&mutex);
  const Context* of = known(context);
  ++record.ends;
  const ncclResult_t result = of != NULL ? resultOf(of, "end") : ncclInternalError;
  if (of != NULL) contexts[of - contexts].used = 0;
  pthread_mutex_unlock(&mutex);
  return result;
}

static void note(ncclFunc_t func, size_t bytes, int pipeOps, const int* nChannels) {
  ++record.questions;
  record.func = (int)func;
  record.bytes = bytes;
  record.pipeOps = pipeOps;
  record.channelsIn = *nChannels;
}

static void wantChannels(const Context* of, int* nChannels) {
  const char* channels = ruleOf(of, "channels");
  if (channels != NULL) *nChannels = atoi(channels);
}

#if TEST_TUNER_VERSION == 2
static ncclResult_t getCollInfo(void* context, ncclFunc_t func, size_t bytes, int collNet, int nvls, int pipeOps,
                                int* algorithm, int* protocol, int* nChannels) {
  pthread_mutex_lock(&mutex);
  note(func, bytes, pipeOps, nChannels);
  record.collNet = collNet;
  record.nvls = nvls;
  record.algorithmIn = *algorithm;
  record.protocolIn = *protocol;
  const Context* of = known(context);
  const ncclResult_t result = of != NULL ? resultOf(of, "info") : ncclInternalError;
  if (result == ncclSuccess) {
    pairOf(of, "take", algorithm, protocol);
    wantChannels(of, nChannels);
  }
  pthread_mutex_unlock(&mutex);
  return result;
}
#else
static void fill(const Context* of, float (*times)[NCCL_NUM_PROTOCOLS]) {
  int algorithm, protocol;
  const char* forbid = ruleOf(of, "forbid");
  for (int a = 0; a < NCCL_NUM_ALGORITHMS; ++a) {
    for (int p = 0; p < NCCL_NUM_PROTOCOLS; ++p) {
      if (times[a][p] >= 0 && ruleOf(of, "even") != NULL) times[a][p] = 1;
      if (forbid != NULL && *forbid == '\0') times[a][p] = NCCL_ALGO_PROTO_IGNORE;
    }
  }
  if (pairOf(of, "forbid", &algorithm, &protocol)) times[algorithm][protocol] = NCCL_ALGO_PROTO_IGNORE;
  if (pairOf(of, "nan", &algorithm, &protocol)) times[algorithm][protocol] = NAN;
  if (pairOf(of, "revive", &algorithm, &protocol)) times[algorithm][protocol] = 0;
  if (pairOf(of, "take", &algorithm, &protocol) && times[algorithm][protocol] >= 0) times[algorithm][protocol] = 0;
}

#if TEST_TUNER_VERSION == 3
static ncclResult_t getCollInfo(void* context, ncclFunc_t func, size_t bytes, int pipeOps, float** table,
                                int nAlgorithms, int nProtocols, int* nChannels) {
  const int registered = -1;
#else
static ncclResult_t getCollInfo(void* context, ncclFunc_t func, size_t bytes, int pipeOps, float** table,
                                int nAlgorithms, int nProtocols, int registered, int* nChannels) {
#endif
  pthread_mutex_lock(&mutex);
  note(func, bytes, pipeOps, nChannels);
  record.registered = registered;
  record.nAlgorithms = nAlgorithms;
  record.nProtocols = nProtocols;
  memcpy(record.times, table, sizeof record.times);
  const Context* of = known(context);
  const ncclResult_t result = of != NULL ? resultOf(of, "info") : ncclInternalError;
  if (result == ncclSuccess) {
    fill(of, (float(*)[NCCL_NUM_PROTOCOLS])table);
    wantChannels(of, nChannels);
  }
  pthread_mutex_unlock(&mutex);
  return result;
}
#endif

#if TEST_TUNER_VERSION >= 6
static ncclResult_t getChunkSize(void* context, ncclFunc_t func, size_t bytes, int algorithm, int protocol,
                                 int nChannels, size_t* chunkSize) {
  pthread_mutex_lock(&mutex);
  ++record.chunkQuestions;
  record.chunkFunc = (int)func;
  record.chunkBytes = bytes;
  record.chunkAlgorithm = algorithm;
  record.chunkProtocol = protocol;
  record.chunkChannels = nChannels;
  record.chunkIn = *chunkSize;
  const Context* of = known(context);
  const ncclResult_t result = of != NULL ? resultOf(of, "chunk") : ncclInternalError;
  const char* size = of != NULL ? ruleOf(of, "size") : NULL;
  if (size != NULL) *chunkSize = (size_t)atol(size);
  pthread_mutex_unlock(&mutex);
  return result;
}
#endif

#define GLUE(a, b) a##b
#define JOIN(a, b) GLUE(a, b)
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

NCCL_PLUGIN_EXPORT extern const JOIN(JOIN(ncclTuner_v, TEST_TUNER_VERSION), _t)
    JOIN(ncclTunerPlugin_v, TEST_TUNER_VERSION);
const JOIN(JOIN(ncclTuner_v, TEST_TUNER_VERSION), _t) JOIN(ncclTunerPlugin_v, TEST_TUNER_VERSION) = {
  .name = "tunerv" TEXT(TEST_TUNER_VERSION),
  .init = init,
  .getCollInfo = getCollInfo,
#if TEST_TUNER_VERSION >= 5
  .finalize = end,
#else
  .destroy = end,
#endif
#if TEST_TUNER_VERSION >= 6
  .getChunkSize = getChunkSize,
#endif
};
