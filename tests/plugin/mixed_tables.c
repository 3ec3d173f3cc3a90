/* With test_net.c and test_env.c: a library that is a plugin of every kind. Of a tuner and a profiler only what they
 * are found by. */
#include "nccl_net_types.h"

struct Table {
  const char* name;
  void* functions[8];
};

NCCL_PLUGIN_EXPORT struct Table ncclTunerPlugin_v4 = {.name = "mixed tuner"};
NCCL_PLUGIN_EXPORT struct Table ncclProfiler_v3 = {.name = "mixed profiler"};
