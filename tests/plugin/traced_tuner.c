/* The tuner of a mixed library, of version 3: MIXED_TAKE=A/P makes that combination its choice, by numbers. */
#include <stdio.h>
#include <stdlib.h>

#include "nccl_tuner.h"
#include "plugin/mixed_trace.h"

typedef struct {
  TracedLife* life;
  atomic_int asked;
} Tuner;

static ncclResult_t init(size_t nRanks, size_t nNodes, ncclDebugLogger_t log, void** context) {
  (void)nRanks, (void)nNodes, (void)log;
  Tuner* made = calloc(1, sizeof *made);
  made->life = beginLife("tuner");
  *context = made;
  return ncclSuccess;
}

static ncclResult_t getCollInfo(void* context, ncclFunc_t func, size_t bytes, int pipeOps, float** table,
                                int nAlgorithms, int nProtocols, int* nChannels) {
  (void)func, (void)bytes, (void)pipeOps, (void)nChannels;
  Tuner* of = context;
  enterLife(of->life, "getCollInfo");
  ++of->asked;
  float* times = (float*)table;
  int a, p;
  const char* take = getenv("MIXED_TAKE");
  if (take != NULL && sscanf(take, "%d/%d", &a, &p) == 2 && a < nAlgorithms && p < nProtocols) {
    if (times[a * nProtocols + p] >= 0) times[a * nProtocols + p] = 0;
  }
  leaveLife(of->life);
  return ncclSuccess;
}

static ncclResult_t destroy(void* context) {
  Tuner* of = context;
  char facts[32];
  snprintf(facts, sizeof facts, "asked=%d", of->asked);
  endLife(of->life, facts);
  free(of);
  return ncclSuccess;
}

NCCL_PLUGIN_EXPORT extern const ncclTuner_v3_t ncclTunerPlugin_v3;
const ncclTuner_v3_t ncclTunerPlugin_v3 = {
    .name = "mixed tuner", .init = init, .getCollInfo = getCollInfo, .destroy = destroy};
