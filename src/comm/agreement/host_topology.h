// One machine of what all ranks of a node know.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "topo/machine/peer_refusal.h"
#include "topo/xml/xml.h"

namespace tutti::topo {
struct Topology;
}

namespace tutti::comm {

struct OwnMachine;
struct TopologyContext;

/// What the ranks of a node know together.
struct JoinedMachine {
  topo::XmlElement elements;  ///< with the GPUs that they use, `rank` being the rank in the communicator
  std::vector<topo::PeerRefusal> peersRefused;  ///< that any of them knows of
};

/// Collective among the ranks of a node. Nothing is exchanged where all know the same. Empty, on all of them alike,
/// where a rank's GPU is not among the elements. `own` has elements.
Result<std::optional<JoinedMachine>> joinMachines(const TopologyContext& context, const OwnMachine& own);

/// The joined machine with its paths; GpuFacts::rank is the local rank. Empty where only the network would join its
/// GPUs: ranks of a node are then not searched as one.
Result<std::optional<topo::Topology>> buildHostTopology(const TopologyContext& context, const JoinedMachine& joined);

}  // namespace tutti::comm
