#include "comm/settings/fusion_settings.h"

namespace tutti::comm {

FusionSettings fusionSettings(const Params::Topology& params) {
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

}  // namespace tutti::comm
