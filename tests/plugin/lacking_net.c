/* A network plugin that needs a function which nobody has, but at its first call. */
#include "nccl_net.h"

ncclResult_t nobodyHasIt(ncclDebugLogger_t log);
static ncclResult_t init(ncclDebugLogger_t log) {
  return nobodyHasIt(log);
}

NCCL_PLUGIN_EXPORT extern ncclNet_v6_t ncclNetPlugin_v6;
ncclNet_v6_t ncclNetPlugin_v6 = {.name = "lacking", .init = init};
