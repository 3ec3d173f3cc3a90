#include "comm/init/channels/connect_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/collnet/comm_collnet.h"
#include "comm/collnet/lanes.h"
#include "comm/connect/channels.h"
#include "comm/connect/connect.h"
#include "comm/connect/links.h"
#include "comm/connect/neighbours.h"
#include "comm/connect/reopen.h"
#include "comm/plan/plan_context.h"
#include "comm/state/communicator.h"
#include "comm/state/membership.h"
#include "gpu/memory_ledger.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {

namespace {

/// Whether the line of any of the ring's connections says so.
bool ringUses(const ChannelSet& channels, std::string_view word) {
  for (const LinkRequest& link : channels.neighbours().ring) {
    for (const ConnectedEnd& end : channels.endsOf(link)) {
      if (end.transport.find(word) != std::string::npos) return true;
    }
  }
  return false;
}

/// Whether the tuner may take it for any collective; the same on all ranks.
bool mayTake(const Tuning& tuning, device::Algorithm algorithm) {
  return std::any_of(tuning.verdicts.begin(), tuning.verdicts.end(), [&](const auto& ofFunc) {
    const auto& row = ofFunc[static_cast<std::size_t>(algorithm)];
    return std::find(row.begin(), row.end(), Verdict::Possible) != row.end();
  });
}

/// Beside the rings, what plans of collectives may need.
Status connectAllElse(ncclComm& comm) {
  const Tuning& tuning = comm.parts.planning->tuning;
  PlanNeeds needs;
  needs.usesTree = mayTake(tuning, device::Algorithm::Tree);
  needs.usesPat = mayTake(tuning, device::Algorithm::Pat);
  if (mayTake(tuning, device::Algorithm::OneShot) || mayTake(tuning, device::Algorithm::Direct)) {
    for (int rank = 0; rank < comm.identity.nRanks; ++rank) {
      if (rank != comm.identity.rank) needs.meshPeers.push_back(rank);
    }
  }
  TRY(openMissing(connectContext(comm), *comm.parts.channels, linksOf(needs, comm.parts.channels->neighbours())));
  sayConnected(needs);
  return {};
}

}  // namespace

ConnectContext connectContext(const ncclComm& comm) {
  return ConnectContext{*comm.parts.bootstrap, comm.parts.peers, comm.parts.transports,
                        comm.parts.planning->tuning.input.slotBytes, comm.parts.proxiedMeshSlots};
}

void sayConnected(const PlanNeeds& needs) {
  if (needs.usesTree) info(kInit, "Connected all trees");
  if (needs.usesPat) info(kInit, "Connected binomial trees");
  if (needs.usesCollNetDirect) info(kInit, "Connected CollNet");
  if (needs.usesCollNetChain) info(kInit, "Connected Collnet Chains");
}

Status connectRings(ncclComm& comm) {
  if (comm.membership->born) {
    // Relatives may be using, or opening, connections at this moment, in an order that init knows nothing of.
    info(kInit, "comm {} shares the connections of its parent; what the parent has not is opened when first used",
         fmt::ptr(&comm));
    return comm.parts.bootstrap->barrier();
  }
  TRY(connectRing(connectContext(comm), *comm.parts.channels));
  info(kInit, "Connected all rings, use ring PXN {} GDR {}", ringUses(*comm.parts.channels, "(") ? 1 : 0,
       ringUses(*comm.parts.channels, "/GDRDMA") ? 1 : 0);
  if (comm.options.connectAtInit) TRY(connectAllElse(comm));
  return comm.parts.bootstrap->barrier();
}

Status connectCollNet(ncclComm& comm, const CollNetLanes& lanes) {
  const device::CollNetView* const view = comm.parts.collNet->view();
  TRY(comm.parts.channels->useCollNet(view, lanes.directLinks, lanes.chainLinks, lanes.head >= 0));
  if (!comm.options.connectAtInit || comm.membership->born) return {};  // as for rings
  const Tuning& tuning = comm.parts.planning->tuning;
  PlanNeeds needs;
  needs.usesCollNetDirect = mayTake(tuning, device::Algorithm::CollNetDirect);
  needs.usesCollNetChain = mayTake(tuning, device::Algorithm::CollNetChain);
  TRY(openMissing(connectContext(comm), *comm.parts.channels, linksOf(needs, comm.parts.channels->neighbours())));
  sayConnected(needs);
  return {};
}

Status reconnectAll(ncclComm& comm) {
  return reopenAll(connectContext(comm), *comm.parts.channels);
}

void logConnections(const ncclComm& comm) {
  if (comm.parts.channels == nullptr) return;
  constexpr double kKiB = 1024.0;
  const std::vector<ConnectedCounters> ends = comm.parts.channels->allEnds();
  std::set<int> channels;
  std::set<int> peers;
  for (const ConnectedCounters& end : ends) {
    channels.insert(end.channel);
    peers.insert(end.peer);
  }
  const auto driven = std::count_if(ends.begin(), ends.end(), [](const auto& end) { return end.task != nullptr; });
  info(
      kInit | kAlloc,
      "Init costs - {}: rank {} nranks {} device memory {:.1f} KiB for tables, {:.1f} KiB for connections; {} channels "
      "connected; {} ends of connections to {} peers, {} of them driven by the host",
      comm.identity.function, comm.identity.rank, comm.identity.nRanks,
      static_cast<double>(comm.memory->bytes(gpu::MemoryClass::Persistent)) / kKiB,
      static_cast<double>(comm.memory->bytes(gpu::MemoryClass::Releasable)) / kKiB, channels.size(), ends.size(),
      peers.size(), driven);
}

}  // namespace tutti::comm
