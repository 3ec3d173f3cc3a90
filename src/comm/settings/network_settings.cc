#include "comm/settings/network_settings.h"

#include "base/settings/params.h"
#include "topo/machine/path_settings.h"

namespace tutti::comm {

FusionSettings fusionSettings(const Params& all) {
  const Params::Topology& params = all.topology;
  FusionSettings settings;
  const std::string& level = params.netMergeLevel;
  if (level == "LOC") settings.farthest.reset();
  if (level == "PIX") settings.farthest = NicDistance::Pix;
  if (level == "PXB" || level == "P2C" || level == "PXN") settings.farthest = NicDistance::Pxb;
  if (level == "PHB" || level == "SYS") settings.farthest = NicDistance::Phb;
  settings.onlyOfOneRail = params.netMergePolicy == "RAIL";
  settings.forced = params.netForceMerge;
  return settings;
}

GpuDirectSettings gpuDirectSettings(const Params& params) {
  return {.level = topo::parsePathLevel(params.topology.netGdrLevel),
          .read = static_cast<int>(params.topology.netGdrRead),
          .dmaBuf = params.topology.dmaBufEnable,
          .alwaysFlush = params.topology.netForceFlush,
          .neverFlush = params.topology.gdrFlushDisable};
}

}  // namespace tutti::comm
