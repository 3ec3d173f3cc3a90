// All graphs of a machine, each with its bound and the time that its search took.
#pragma once

#include <vector>

#include "tutti_topo/load.h"
#include "tutti_topo/text.h"

namespace tutti::tool {

/// What a communicator would get of searchGraphs(): ring and tree, and the graphs of CollNet and NVLS that are wanted;
/// those that the machine cannot have have no channels.
std::vector<Found> searchAll(const Loaded& loaded);

/// The same of graphs that were not searched, those that have channels. Their time is 0.
std::vector<Found> withBounds(const Loaded& loaded, const topo::GraphSet& graphs);

}  // namespace tutti::tool
