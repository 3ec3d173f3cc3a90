#include "comm/settings/gpu_direct_settings.h"

#include "topo/machine/path_settings.h"

namespace tutti::comm {

GpuDirectSettings gpuDirectSettings(const Params& params) {
  return {.level = topo::parsePathLevel(params.topology.netGdrLevel),
          .read = static_cast<int>(params.topology.netGdrRead),
          .dmaBuf = params.topology.dmaBufEnable,
          .alwaysFlush = params.topology.netForceFlush,
          .neverFlush = params.topology.gdrFlushDisable};
}

}  // namespace tutti::comm
