// The stage of init in which the ranks find their graphs.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"

struct ncclComm;

namespace tutti::topo {
struct AgreedGraphs;
struct ChannelLimits;
}  // namespace tutti::topo

namespace tutti::comm {

struct CommGraphs;
struct NodeHeads;
struct OwnMachine;

/// Collective. The graphs of all nodes, and the NICs of this rank (CommNetwork::nics()). Errors: those of findGraphs().
Result<std::shared_ptr<const CommGraphs>> findGraphs(ncclComm& comm, const OwnMachine& machine);

/// What all nodes can do; null: their graphs are not known.
const topo::AgreedGraphs* knownGraphs(const CommGraphs& graphs);

/// Who of this rank's node talks to a network that reduces; null: the graphs are not known.
const NodeHeads* knownHeads(const CommGraphs& graphs);

/// How many channels known graphs give on these devices, within the limits.
int channelsOfGraphs(const ncclComm& comm, const CommGraphs& graphs, const topo::ChannelLimits& limits);

/// Neighbours in all trees there may be, whatever number of channels up to this one the ranks will agree on.
std::vector<int> treeNeighbours(const ncclComm& comm, const CommGraphs& graphs, int mostChannels);

/// Makes this rank's `nChannels` channels and whatever drives them (channels/channel_stage.h): along the graphs where
/// they are known, else along the ranks' numbers.
Status buildChannels(ncclComm& comm, const CommGraphs& graphs, int nChannels);

}  // namespace tutti::comm
