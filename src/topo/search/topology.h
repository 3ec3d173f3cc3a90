// From a topology file (or what detection wrote in its form) to a machine with its paths: the entry point of init,
// tools and tests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "topo/machine/machine.h"
#include "topo/machine/paths.h"
#include "topo/search/search.h"
#include "topo/xml/xml.h"

namespace tutti::topo {

/// Which part of a described machine a communicator uses.
struct TopologyUse {
  std::vector<int> gpus;   ///< NVML indices, in rank order; empty: all of the file, in its order
  int hosts = 1;           ///< that many copies of the machine joined by NVLink into one (MNNVL)
  bool interNode = false;  ///< the communicator spans several such machines; NICs are used
  bool collNet = false;    ///< mark all NICs as capable of collectives
  int rank = 0;            ///< whose group the result is about, counted from 0 over the GPUs of all hosts
  std::vector<int> ranks;  ///< instead of `gpus`: the values of `rank` in the description, in rank order
};

/// A machine that one group of GPUs can use together, with its paths.
struct Topology {
  Machine machine;
  PathTable paths{0};
  bool interNode = false;    ///< as asked, or because the communicator fell into groups joined by the network only
  std::vector<int> groupOf;  ///< group of each GPU of the use, in rank order; groups in the order of their lowest rank
  int group = 0;             ///< the one this value is about
};

/// Reads a machine out of `xml` for `use`: trims what is not used, gives ranks, builds nodes and links, computes paths,
/// splits off GPUs that only the network reaches (docs/topology.md, "GPU groups"). GPUs keep the ranks of the use.
/// Errors: ncclInvalidUsage, naming element, line and attribute; ncclInvalidArgument: a GPU the file does not have.
Result<Topology> buildTopology(const XmlElement& xml, const TopologyUse& use, const PathSettings& settings);

}  // namespace tutti::topo
