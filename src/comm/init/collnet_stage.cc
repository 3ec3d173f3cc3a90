#include "comm/init/collnet_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/agreement/comm_graphs.h"
#include "comm/collnet/comm_collnet.h"
#include "comm/collnet/lanes.h"
#include "comm/collnet/rails.h"
#include "comm/connect/channels.h"
#include "comm/init/connect_stage.h"
#include "comm/init/tuning_wishes.h"
#include "comm/launch/device_pool.h"
#include "comm/network/network.h"
#include "comm/plan/plan.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/communicator.h"
#include "comm/tuning/model.h"
#include "topo/channels/costs.h"
#include "topo/machine/rank_layout.h"
#include "transport/common/transport.h"

namespace tutti::comm {

namespace {

const topo::PeerInfo& selfOf(const CommParts& parts, int rank) {
  return parts.peers[static_cast<std::size_t>(rank)];
}

/// Ranks with the fewest and the most devices.
auto extremes(const CommParts& parts) {
  return std::minmax_element(parts.peers.begin(), parts.peers.end(),
                             [](const auto& a, const auto& b) { return a.collNetDevices < b.collNetDevices; });
}

/// Why nobody can have it, as all ranks see it; empty: nothing stands against it so far.
std::string whyNotWanted(const ncclComm& comm) {
  const CommParts& parts = comm.parts;
  const topo::PeerInfo& least = *extremes(parts).first;
  if (least.collNetDevices < 0) {
    return fmt::format("CollNet is not enabled on rank {} (NCCL_COLLNET_ENABLE, or collnetEnable of the configuration)",
                       least.rank);
  }
  if (least.collNetDevices == 0) {
    return fmt::format("rank {} on host {} has no collNet plugin with a device (NCCL_NET_PLUGIN)", least.rank,
                       least.hostName.data());
  }
  const int nodes = parts.layout->nNodes();
  if (nodes < comm.settings->collNet.nodeThreshold) {
    return fmt::format(
        "Communicator has {} nodes which is less than CollNet node threshold {}, disabling CollNet "
        "(NCCL_COLLNET_NODE_THRESHOLD)",
        nodes, comm.settings->collNet.nodeThreshold);
  }
  return {};
}

/// All ranks see the same table, and come to the same.
Status checkDeviceCounts(const ncclComm& comm) {
  const auto [least, most] = extremes(comm.parts);
  if (least->collNetDevices < 0 || least->collNetDevices == most->collNetDevices) return {};
  if (comm.settings->collNet.ignoresMismatch) return {};
  const Status differs = fail(
      ncclSystemError,
      "Detected mixed local CollNet device counts across ranks (min {}, max {}): rank {} on host {} has {} and rank "
      "{} on host {} has {}. Load the same plugin with the same devices on all hosts, or set "
      "NCCL_IGNORE_COLLNET_MISMATCH=1",
      least->collNetDevices, most->collNetDevices, least->rank, least->hostName.data(), least->collNetDevices,
      most->rank, most->hostName.data(), most->collNetDevices);
  // Nobody may leave, and be taken for dead, before all have seen the difference themselves.
  comm.parts.bootstrap->barrier().ignore();
  return differs;
}

/// Not those that take the network for it.
Result<bool> reachesLocals(const CommParts& parts, int rank) {
  const topo::PeerInfo& self = selfOf(parts, rank);
  for (const int peer : parts.layout->ranksOnNode(parts.layout->nodeOf(rank))) {
    if (peer == rank) continue;
    bool reached = false;
    for (const auto& transport : parts.transports) {
      if (transport->proxied() || reached) continue;
      ASSIGN(reached, transport->reachable(self, selfOf(parts, peer)));
    }
    if (!reached) return false;
  }
  return true;
}

/// By the graphs where they are known, else by the ranks' numbers.
NodeHeads ownHeads(const ncclComm& comm, const CommGraphs& graphs) {
  if (graphs.known()) return graphs.heads;
  const CommNetwork& network = *comm.parts.network;
  return headsByRank(comm.parts.layout->localRanks(), network.collective());
}

Result<Rails> agreeOnRails(const ncclComm& comm, const NodeHeads& node) {
  const CommParts& parts = comm.parts;
  ASSIGN(const bool reaches, reachesLocals(parts, comm.identity.rank));
  std::vector<RailReport> reports(parts.peers.size());
  reports[static_cast<std::size_t>(comm.identity.rank)] = railReport(node, parts.layout->localRank(), reaches);
  TRY(allGatherValues(*parts.bootstrap, std::span(reports)));
  return railsFrom(*parts.layout, parts.peers, reports);
}

topo::GraphSpeed speedOf(const CommGraphs& graphs, topo::GraphSpeed topo::GraphSpeeds::*graph,
                         const topo::GraphSpeed& assumed) {
  return graphs.known() ? topo::speedsOf(graphs.agreed).*graph : assumed;
}

/// The tuner with what came of it.
void retune(ncclComm& comm, CollNetFacts facts) {
  Tuning& tuning = comm.parts.planning->tuning;
  TuningInput input = std::move(tuning.input);
  input.collNet = std::move(facts);
  tuning = makeTuning(std::move(input));
}

/// Off, on all ranks alike.
void turnOff(ncclComm& comm, const std::string& why) {
  comm.parts.planning->tuning.input.collNet.why = "CollNet is not used: " + why;
  if (selfOf(comm.parts, comm.identity.rank).collNetDevices >= 0) info(kInit, "CollNet is not used: {}", why);
}

/// The same after a failure, of which somebody has to know.
void turnOffAfterFailure(ncclComm& comm, const std::string& why) {
  turnOff(comm, why);
  if (comm.identity.rank != 0) return;
  warn("Cannot initialize CollNet, using point-to-point network instead: {}. All ranks go on without it", why);
}

/// A step of a lane has to fit into a slot of every connection on its way.
std::uint32_t collNetSlotBytes(const TuningInput& input) {
  constexpr auto kSimple = static_cast<std::size_t>(device::Protocol::Simple);
  const auto slot = [&](device::ConnKind kind) { return input.slotBytes[static_cast<std::size_t>(kind)][kSimple]; };
  return std::min(slot(device::ConnKind::Graph), slot(device::ConnKind::Mesh));
}

}  // namespace

std::int32_t collNetDevices(const ncclComm& comm) {
  if (comm.config.values.collnetEnable == 0 || !comm.parts.network) return -1;
  return static_cast<std::int32_t>(comm.parts.network->collective().size());
}

bool wantsCollNet(const ncclComm& comm) {
  return whyNotWanted(comm).empty();
}

Status joinCollNet(ncclComm& comm, const CommGraphs& graphs) {
  CommParts& parts = comm.parts;
  if (comm.identity.nRanks == 1 || extremes(parts).second->collNetDevices < 0) return {};
  info(kInit, "Rank {}: {} CollNet devices", comm.identity.rank, std::max(collNetDevices(comm), 0));
  TRY(checkDeviceCounts(comm));
  if (const std::string why = whyNotWanted(comm); !why.empty()) {
    turnOff(comm, why);
    return {};
  }
  const NodeHeads node = ownHeads(comm, graphs);
  ASSIGN(const Rails rails, agreeOnRails(comm, node));
  if (!rails.direct() && !rails.chain()) {
    turnOff(comm, rails.whyNoDirect);
    return {};
  }
  const TuningInput& input = parts.planning->tuning.input;
  const CollNetLanes lanes = lanesOf(*parts.layout, node, rails, static_cast<int>(usableChannels(*parts.planning)));
  ASSIGN(CollNetOutcome outcome, CommCollNet::join({.control = *parts.bootstrap,
                                                    .abort = comm.abort,
                                                    .device = *parts.device->device,
                                                    .network = parts.network,
                                                    .progress = *parts.progress,
                                                    .layout = *parts.layout,
                                                    .peers = parts.peers,
                                                    .gpuDirect = comm.settings->gpuDirect,
                                                    .node = node,
                                                    .rails = rails,
                                                    .lanes = lanes,
                                                    .slotBytes = collNetSlotBytes(input),
                                                    .ledger = comm.memory}));
  if (!outcome.collNet) {
    turnOffAfterFailure(comm, outcome.why);
    return {};
  }
  parts.collNet = std::move(outcome.collNet);
  TRY(parts.channels->useCollNet(parts.collNet->view(), lanes.directLinks, lanes.chainLinks, lanes.head >= 0));
  CollNetFacts facts = parts.collNet->facts();
  facts.directSpeed = speedOf(graphs, &topo::GraphSpeeds::collNetDirect, input.speeds.ring);
  facts.chainSpeed = speedOf(graphs, &topo::GraphSpeeds::collNetChain, input.speeds.ring);
  retune(comm, std::move(facts));
  logTuning(comm);
  return comm.options.connectAtInit ? connectCollNet(comm) : Status();
}

}  // namespace tutti::comm
