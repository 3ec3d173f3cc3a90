// One machine of what all ranks of a node know.
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "comm/topology_stages.h"

namespace tutti {

/// Collective among the ranks of a node: their machine's elements with the GPUs that they use, `rank` being the rank in
/// the communicator. Nothing is exchanged where all have the same elements. Empty, on all of them alike, where a rank's
/// GPU is not among the elements.
Result<std::optional<XmlElement>> joinElements(const TopologyContext& context, const XmlElement& own);

/// The machine of joined elements with its ways; GpuFacts::rank is the local rank. `peersRefused` as in OwnMachine.
/// Empty where only the network would join its GPUs: ranks of a node are then not searched as one.
Result<std::optional<Topology>> buildHostTopology(const TopologyContext& context, const XmlElement& elements,
                                                  std::span<const std::pair<int, int>> peersRefused);

}  // namespace tutti
