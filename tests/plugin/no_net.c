/* A library that is no network plugin: a collNet alone is none. */
#include "nccl_net.h"

static ncclResult_t init(ncclDebugLogger_t log) {
  (void)log;
  return ncclSuccess;
}

NCCL_PLUGIN_EXPORT extern ncclCollNet_v6_t ncclCollNetPlugin_v6;
ncclCollNet_v6_t ncclCollNetPlugin_v6 = {.name = "alone", .init = init};
