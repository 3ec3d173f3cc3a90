#include "comm/init/planning_stage.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/init/agreement.h"
#include "comm/init/net_options.h"
#include "comm/init/stages.h"
#include "comm/launch/device_pool.h"
#include "comm/network/network.h"
#include "comm/plan/mesh_slots.h"
#include "comm/plan/message_channels.h"
#include "comm/plan/plan_messages.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/communicator.h"
#include "comm/tuning/log.h"
#include "comm/tuning/model.h"
#include "topo/channels/trees.h"
#include "topo/machine/rank_layout.h"
#include "transport/common/transport.h"

namespace tutti::comm {

namespace {

/// NCCL_ALGO and NCCL_PROTO; a lone rank has nothing to choose.
Result<TuningFilter> readFilter(const ncclComm& comm) {
  if (comm.identity.nRanks == 1) return parseTuningFilter("", "");
  ASSIGN(TuningFilter filter, filterFrom(comm.settings->algo, comm.settings->proto, comm.settings->tuning));
  if (comm.identity.rank == 0 && filter.restricted()) {
    for (const std::string& line : filterMatrix(filter)) info(kEnv, "{}", line);
  }
  return filter;
}

void logTuning(const Tuning& tuning) {
  for (const std::string& line : describeTuning(tuning)) info(kTuning, "{}", line);
}

/// The channels that this rank would take if others did not wish for less.
int channelsWished(const ncclComm& comm, const device::Policy& policy, const CommGraphs& graphs) {
  const CommParts& parts = comm.parts;
  const topo::PeerInfo& self = parts.peers[static_cast<std::size_t>(comm.identity.rank)];
  int wished = wishedChannels(policy, comm.config, *comm.settings);
  if (graphs.known()) {
    const auto lower = [](const topo::PeerInfo& a, const topo::PeerInfo& b) {
      return a.computeCapability < b.computeCapability;
    };
    const int lowest = std::min_element(parts.peers.begin(), parts.peers.end(), lower)->computeCapability;
    wished =
        topo::channelsFor(graphs.agreed, parts.layout->nNodes(), lowest, channelLimits(comm.config, *comm.settings));
  }
  if (self.softGpu != 0) return wished;
  return channelsThatFit(wished, parts.device->device->facts().multiprocessors, parts.peers, self);
}

/// Neighbours in all trees there may be, whatever number of channels the ranks will agree on.
std::vector<int> treeNeighbours(const ncclComm& comm, const CommGraphs& graphs, int mostChannels) {
  const topo::RankLayout& layout = *comm.parts.layout;
  if (!graphs.known()) return topo::treesOf(layout, layout.rank()).neighbours();
  return topo::treeNeighboursAcross(layout, graphs.words, graphs.agreed, mostChannels);
}

/// NICs near this rank, and what they carry together in GB/s; where nothing is known of the machine, the fastest one.
struct NearNics {
  int count = 1;
  double bandwidth = 0;
};

NearNics nearNics(const CommParts& parts) {
  constexpr double kMbpsPerGigabyte = 8000;
  NearNics nics;
  if (!parts.network) return nics;
  const std::vector<plugin::NetProperties>& devices = parts.network->devices();
  double fastest = 0;
  for (const int device : parts.network->usable()) {
    const double speed = devices[static_cast<std::size_t>(device)].speedMbps / kMbpsPerGigabyte;
    fastest = std::max(fastest, speed);
    if (std::find(parts.nics.nearest.begin(), parts.nics.nearest.end(), device) != parts.nics.nearest.end()) {
      nics.bandwidth += speed;
    }
  }
  nics.count = std::max(static_cast<int>(parts.nics.nearest.size()), 1);
  nics.bandwidth = std::max(nics.bandwidth, fastest);
  return nics;
}

MessageLimits messageWishes(const ncclComm& comm) {
  const auto given = [](int value) { return value == NCCL_CONFIG_UNDEF_INT ? 0 : value; };
  const ncclConfig_t& config = comm.config.values;
  const NearNics nics = nearNics(comm.parts);
  return {.fewest = comm.settings->messages.fewest,
          .most = comm.settings->messages.most,
          .perNetPeer = wishedPerNetPeer(given(config.nChannelsPerNetPeer), nics.count, nics.bandwidth),
          .peers = wishedPeers(given(config.maxP2pPeers), comm.identity.nRanks)};
}

/// What a message is cut into, and on how many channels it runs.
void layOutMessages(ncclComm& comm, const MessageSlots& slots) {
  constexpr auto kMesh = static_cast<std::size_t>(device::ConnKind::Mesh);
  constexpr auto kSimple = static_cast<std::size_t>(device::Protocol::Simple);
  const PlanContext& planning = *comm.parts.planning;
  const bool severalNodes = comm.parts.layout->nNodes() > 1;
  const unsigned channels = messageChannelsOf(planning);
  const unsigned perPeer = channelsPerPeer(planning.messages, channels, !severalNodes);
  device::SlotBytes proxied = planning.tuning.input.slotBytes[kMesh];
  const std::uint32_t local = proxied[kSimple];
  proxied[kSimple] = slots.net;
  // A node's own ranks count like the others: the network may join them as well.
  const MeshWorld world{.peers = planning.messages.peers,
                        .perPeer = static_cast<int>(perPeer),
                        .nChannels = static_cast<int>(channels),
                        .llMessageBytes = planning.policy().llMessageBytes};
  comm.parts.proxiedMeshSlots = chooseMeshSlots(proxied, world, *comm.settings);
  if (comm.identity.rank == 0) {
    logMeshSlots(comm.parts.proxiedMeshSlots, proxied, world, *comm.settings,
                 sharedNetSlots(*comm.settings, longMessageSteps(comm)));
  }
  const std::uint32_t chunk = severalNodes ? comm.parts.proxiedMeshSlots[kSimple] : local;
  info(kInit, "P2P Chunksize set to {}", chunk);
  info(kInit, "{} coll channels, 0 collnet channels, 0 nvls channels, {} p2p channels, {} p2p channels per peer",
       planning.nChannels(), channels, perPeer);
}

}  // namespace

Status agreeOnPlanning(ncclComm& comm, const CommGraphs& graphs) {
  constexpr auto kGraph = static_cast<std::size_t>(device::ConnKind::Graph);
  constexpr auto kMesh = static_cast<std::size_t>(device::ConnKind::Mesh);
  constexpr auto kSimple = static_cast<std::size_t>(device::Protocol::Simple);
  CommParts& parts = comm.parts;
  const int rank = comm.identity.rank;
  ASSIGN(TuningFilter filter, readFilter(comm));
  const device::Policy policy = policyFor(parts.device->device->driver(), *comm.settings);
  auto slotBytes = slotBytesFor(policy, *comm.settings);
  MessageSlots slots = messageSlots(comm.settings->messages, slotBytes[kGraph][kSimple], slotBytes[kMesh][kSimple]);
  slots.net = netMessageStep(slots.net, *comm.settings, longMessageSteps(comm));
  Proposal proposal = proposalFor(policy, slotBytes, *comm.settings);
  proposal.channels = channelsWished(comm, policy, graphs);
  propose(proposal, messageWishes(comm), slots);
  if (parts.network) proposal.network = agreedText(parts.network->net().name());
  const std::vector<int> inTrees = treeNeighbours(comm, graphs, proposal.channels);
  ASSIGN(proposal.links, abilitiesOf(parts.transports, parts.peers, inTrees, rank));
  proposal.links.stepsInPlace = stepsInPlace(comm);
  ASSIGN(const Agreement agreement, agree(*parts.bootstrap, parts.peers, proposal));
  const auto nChannels = static_cast<unsigned>(agreement.nChannels);
  const topo::AgreedGraphs* const agreed = graphs.known() ? &graphs.agreed : nullptr;
  const RankFacts ranks = rankFactsFrom(agreement, *parts.layout, parts.peers, agreed);
  slotBytes[kMesh][kSimple] = ranks.path == PathClass::NVLink ? slots.nvl : slots.pci;
  parts.planning->rank = rank;
  parts.planning->messages = agreement.messages;
  parts.planning->mostPerGroup = comm.settings->messages.mostPerGroup;
  for (int r = 0; r < comm.identity.nRanks; ++r) parts.planning->nodes.push_back(parts.layout->nodeOf(r));
  parts.planning->tuning = makeTuning({
      .ranks = ranks,
      .speeds = speedsFrom(agreement, ranks, agreed),
      .nChannels = nChannels,
      .slotBytes = slotBytes,
      .inPlaceStep = slots.net,
      .stepsInPlace = agreement.links.stepsInPlace,
      .policy = graphs.known() ? alongGraphs(policy, agreement.nChannels) : policy,
      .threadsGiven = agreement.threadsGiven,
      .thresholds = comm.settings->tuning.thresholds,
      .filter = std::move(filter),
  });
  info(kInit, "{}", thresholdsLine(parts.planning->tuning.input));
  layOutMessages(comm, slots);
  if (rank == 0) logTuning(parts.planning->tuning);
  return {};
}

}  // namespace tutti::comm
