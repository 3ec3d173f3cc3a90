// What connections carry: as graphs say, or as is assumed.
#pragma once

#include "comm/tuning/tuning.h"

namespace tutti::topo {
struct GraphSpeeds;
}

namespace tutti::comm {

/// Speeds to assume while nobody has searched the topology. `meshed`: P2P connects every pair of ranks. Algorithms
/// without connections have to be set to 0 by the caller.
Speeds assumedSpeeds(const RankFacts& ranks, unsigned nChannels, bool meshed);

/// Speeds that the graphs of all nodes give. The links of the ring are taken to serve the Mesh as well.
Speeds knownSpeeds(const RankFacts& ranks, const topo::GraphSpeeds& graphs, unsigned nChannels, bool meshed);

}  // namespace tutti::comm
