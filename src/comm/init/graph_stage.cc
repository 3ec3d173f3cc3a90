#include "comm/init/graph_stage.h"

#include <algorithm>
#include <utility>

#include "bootstrap/bootstrap.h"
#include "comm/agreement/comm_graphs.h"
#include "comm/agreement/own_machine.h"
#include "comm/init/channels/channel_stage.h"
#include "comm/init/collnet_stage.h"
#include "comm/network/network.h"
#include "comm/network/own_nics.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/communicator.h"
#include "topo/channels/inter_node.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

Result<std::shared_ptr<const CommGraphs>> findGraphs(ncclComm& comm, const OwnMachine& machine) {
  CommParts& parts = comm.parts;
  ASSIGN(
      CommGraphs graphs,
      findGraphs({*parts.bootstrap, parts.peers, *parts.layout, comm.settings->topology, wantsCollNet(comm)}, machine));
  if (parts.network) parts.network->setNics(graphs.nics);
  return std::make_shared<const CommGraphs>(std::move(graphs));
}

const topo::AgreedGraphs* knownGraphs(const CommGraphs& graphs) {
  return graphs.known() ? &graphs.agreed : nullptr;
}

const NodeHeads* knownHeads(const CommGraphs& graphs) {
  return graphs.known() ? &graphs.heads : nullptr;
}

int channelsOfGraphs(const ncclComm& comm, const CommGraphs& graphs, const topo::ChannelLimits& limits) {
  const CommParts& parts = comm.parts;
  const auto lower = [](const topo::PeerInfo& a, const topo::PeerInfo& b) {
    return a.computeCapability < b.computeCapability;
  };
  const int lowest = std::min_element(parts.peers.begin(), parts.peers.end(), lower)->computeCapability;
  return topo::channelsFor(graphs.agreed, parts.layout->nNodes(), lowest, limits);
}

std::vector<int> treeNeighbours(const ncclComm& comm, const CommGraphs& graphs, int mostChannels) {
  const topo::RankLayout& layout = *comm.parts.layout;
  if (!graphs.known()) return topo::treesOf(layout, layout.rank()).neighbours();
  return topo::treeNeighboursAcross(layout, graphs.words, graphs.agreed, mostChannels);
}

Status buildChannels(ncclComm& comm, const CommGraphs& graphs, int nChannels) {
  ASSIGN(topo::RankChannels channels, channelsOf(graphs, *comm.parts.layout, nChannels));
  return buildChannels(comm, std::move(channels));
}

}  // namespace tutti::comm
