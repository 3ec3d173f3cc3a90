#include "comm/init/message_layout.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "comm/init/collnet_stage.h"
#include "comm/init/planning_stage.h"
#include "comm/init/transports/message_steps.h"
#include "comm/network/network.h"
#include "comm/network/own_nics.h"
#include "comm/plan/mesh_slots.h"
#include "comm/plan/plan_context.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/communicator.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

namespace {

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
    if (std::find(parts.network->nics().nearest.begin(), parts.network->nics().nearest.end(), device) !=
        parts.network->nics().nearest.end()) {
      nics.bandwidth += speed;
    }
  }
  nics.count = std::max(static_cast<int>(parts.network->nics().nearest.size()), 1);
  nics.bandwidth = std::max(nics.bandwidth, fastest);
  return nics;
}

}  // namespace

MessageLimits messageWishes(const ncclComm& comm) {
  const auto given = [](int value) { return value == NCCL_CONFIG_UNDEF_INT ? 0 : value; };
  const ncclConfig_t& config = comm.config.values;
  const NearNics nics = nearNics(comm.parts);
  return {.fewest = comm.settings->messages.fewest,
          .most = comm.settings->messages.most,
          .perNetPeer = wishedPerNetPeer(given(config.nChannelsPerNetPeer), nics.count, nics.bandwidth),
          .peers = wishedPeers(given(config.maxP2pPeers), comm.identity.nRanks)};
}

MessageSlots ownMessageSlots(const ncclComm& comm, const std::array<device::SlotBytes, device::kConnKinds>& slotBytes) {
  constexpr auto kGraph = static_cast<std::size_t>(device::ConnKind::Graph);
  constexpr auto kMesh = static_cast<std::size_t>(device::ConnKind::Mesh);
  constexpr auto kSimple = static_cast<std::size_t>(device::Protocol::Simple);
  MessageSlots slots = messageSlots(comm.settings->messages, slotBytes[kGraph][kSimple], slotBytes[kMesh][kSimple]);
  slots.net = netMessageStep(slots.net, *comm.settings, longMessageSteps(comm));
  return slots;
}

void layOutMessages(ncclComm& comm, const MessageSlots& slots) {
  constexpr auto kMesh = static_cast<std::size_t>(device::ConnKind::Mesh);
  constexpr auto kSimple = static_cast<std::size_t>(device::Protocol::Simple);
  PlanContext& planning = *comm.parts.planning;
  planning.mostPerGroup = comm.settings->messages.mostPerGroup;
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
  info(kInit, "{} coll channels, {} collnet channels, 0 nvls channels, {} p2p channels, {} p2p channels per peer",
       planning.nChannels(), wantsCollNet(comm) ? collNetShape(comm).nChannels : 0, channels, perPeer);
}

}  // namespace tutti::comm
