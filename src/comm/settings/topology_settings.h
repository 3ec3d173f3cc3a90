// What the environment says about machines and graphs, as plain values.
#pragma once

#include <string>

#include "topo/machine/path_settings.h"

namespace tutti {
struct Params;
}

namespace tutti::comm {

/// A file to write, and by which rank.
struct DumpFile {
  std::string path;  ///< empty: none
  int rank = 0;

  bool wantedBy(int who) const { return !path.empty() && rank == who; }
};

/// A value; constant for the life of a communicator. Ranks of one node should have it alike.
struct TopologySettings {
  std::string file;          ///< NCCL_TOPO_FILE
  std::string graphFile;     ///< NCCL_GRAPH_FILE
  DumpFile dump;             ///< NCCL_TOPO_DUMP_FILE
  DumpFile graphDump;        ///< NCCL_GRAPH_DUMP_FILE
  topo::PathSettings paths;  ///< never over the network inside a node for its speed: P2P and SHM come first there
  int crossNic = 2;          ///< NCCL_CROSS_NIC
};

TopologySettings topologySettingsFrom(const Params& params);

}  // namespace tutti::comm
