#include "comm/settings/topology_settings.h"

#include "base/settings/params.h"
#include "topo/machine/path_settings.h"

namespace tutti::comm {

TopologySettings topologySettingsFrom(const Params& params) {
  const Params::Topology& from = params.topology;
  TopologySettings settings;
  settings.file = from.topoFile;
  settings.graphFile = from.graphFile;
  settings.dump = {from.topoDumpFile, static_cast<int>(from.topoDumpRank)};
  settings.graphDump = {from.graphDumpFile, static_cast<int>(from.graphDumpRank)};
  settings.paths = topo::pathSettings(params);
  settings.paths.netDisableIntra = true;
  settings.crossNic = static_cast<int>(from.crossNic);
  return settings;
}

}  // namespace tutti::comm
