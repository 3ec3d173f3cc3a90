#include "comm/init/collnet_stage.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/collnet/collnet_member.h"
#include "comm/collnet/comm_collnet.h"
#include "comm/collnet/lanes.h"
#include "comm/collnet/rails.h"
#include "comm/collnet/reasons.h"
#include "comm/collnet/wishes.h"
#include "comm/init/channels/connect_stage.h"
#include "comm/init/graph_stage.h"
#include "comm/init/planning_stage.h"
#include "comm/init/transports/message_steps.h"
#include "comm/launch/device_pool.h"
#include "comm/network/network.h"
#include "comm/state/communicator.h"
#include "comm/state/registrations.h"
#include "plugin/network/collnet_lack.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

namespace {

CollNetObstacle obstacleOf(const ncclComm& comm) {
  return collNetObstacle(comm.parts.peers, comm.parts.layout->nNodes(), *comm.settings);
}

/// By the graphs where they are known, else by the ranks' numbers.
NodeHeads ownHeads(const ncclComm& comm, const CommGraphs& graphs) {
  if (const NodeHeads* const known = knownHeads(graphs)) return *known;
  return headsByRank(comm.parts.layout->localRanks(), comm.parts.network->collective());
}

Result<Rails> agreeOnRails(const ncclComm& comm, const NodeHeads& node) {
  const CommParts& parts = comm.parts;
  ASSIGN(const bool reaches, reachesLocals(parts.transports, parts.peers, *parts.layout));
  std::vector<RailReport> reports(parts.peers.size());
  reports[static_cast<std::size_t>(comm.identity.rank)] = railReport(node, parts.layout->localRank(), reaches);
  TRY(allGatherValues(*parts.bootstrap, std::span(reports)));
  return railsFrom(*parts.layout, parts.peers, reports);
}

/// Off, on all ranks alike.
void turnOff(ncclComm& comm, const std::string& why) {
  planWithoutCollNet(comm, "CollNet is not used: " + why);
  const topo::PeerInfo& self = comm.parts.peers[static_cast<std::size_t>(comm.identity.rank)];
  if (self.collNetDevices >= 0) info(kInit, "CollNet is not used: {}", why);
}

/// The same after a failure, of which somebody has to know.
void turnOffAfterFailure(ncclComm& comm, const std::string& why) {
  turnOff(comm, why);
  if (comm.identity.rank != 0) return;
  warn("Cannot initialize CollNet, using point-to-point network instead: {}. All ranks go on without it", why);
}

/// What stands against it in the table of ranks. Where that is a lack of devices, the networks know more of why.
Status refuse(ncclComm& comm, const CollNetObstacle& obstacle) {
  std::vector<RankReason> reasons;
  if (obstacle.lacking >= 0) {
    const plugin::CollNetLack& lack = comm.parts.network->collNetLack();
    ASSIGN(reasons, gatherReasons(*comm.parts.bootstrap, {lack.why, lack.failed}));
  }
  const RankReason whole = explained(obstacle, comm.parts.peers, reasons);
  if (whole.failed) {
    turnOffAfterFailure(comm, whole.why);
  } else {
    turnOff(comm, whole.why);
  }
  return {};
}

/// Joins this rank's part, or turns CollNet off.
Status join(ncclComm& comm, const CommGraphs& graphs, const NodeHeads& node, const Rails& rails) {
  CommParts& parts = comm.parts;
  const CollNetShape shape = collNetShape(comm);
  std::shared_ptr<transport::RegisteredMemory> registered;
  if (letsPastSlots(comm)) registered = comm.registrations->memory();
  const CollNetLanes lanes = lanesOf(*parts.layout, node, rails, shape.nChannels);
  ASSIGN(CollNetOutcome outcome, CommCollNet::join({.control = *parts.bootstrap,
                                                    .abort = comm.abort,
                                                    .device = *parts.device->device,
                                                    .network = parts.network,
                                                    .progress = *parts.progress,
                                                    .layout = *parts.layout,
                                                    .peers = parts.peers,
                                                    .settings = *comm.settings,
                                                    .node = node,
                                                    .rails = rails,
                                                    .lanes = lanes,
                                                    .slotBytes = shape.slotBytes,
                                                    .ledger = comm.memory,
                                                    .registered = std::move(registered)}));
  if (!outcome.collNet) {
    turnOffAfterFailure(comm, outcome.why);
    return {};
  }
  parts.collNet = std::move(outcome.collNet);
  planWithCollNet(comm, graphs, parts.collNet->facts());
  return connectCollNet(comm, lanes);
}

}  // namespace

std::int32_t collNetDevices(const ncclComm& comm) {
  if (comm.config.values.collnetEnable == 0 || !comm.parts.network) return -1;
  return static_cast<std::int32_t>(comm.parts.network->collective().size());
}

bool wantsCollNet(const ncclComm& comm) {
  return obstacleOf(comm).why.empty();
}

Status joinCollNet(ncclComm& comm, const CommGraphs& graphs) {
  const CommParts& parts = comm.parts;
  if (comm.identity.nRanks == 1 || !anybodyWantsCollNet(parts.peers)) return {};
  info(kInit, "Rank {}: {} CollNet devices", comm.identity.rank, std::max(collNetDevices(comm), 0));
  if (const CollNetObstacle obstacle = obstacleOf(comm); !obstacle.why.empty()) return refuse(comm, obstacle);
  const NodeHeads node = ownHeads(comm, graphs);
  ASSIGN(const Rails rails, agreeOnRails(comm, node));
  if (rails.direct() || rails.chain()) {
    if (!rails.direct()) info(kInit, "CollNetDirect is not possible: {}", rails.whyNoDirect);
    if (!rails.chain()) info(kInit, "CollNetChain is not possible: {}", rails.whyNoChain);
    return join(comm, graphs, node, rails);
  }
  turnOff(comm, rails.whyNoDirect);
  return {};
}

}  // namespace tutti::comm
