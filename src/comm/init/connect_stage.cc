#include "comm/init/connect_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/collnet/comm_collnet.h"
#include "comm/collnet/lanes.h"
#include "comm/connect/channels.h"
#include "comm/connect/connect.h"
#include "comm/connect/links.h"
#include "comm/connect/neighbours.h"
#include "comm/connect/reopen.h"
#include "comm/diagnosis/call_exchange.h"
#include "comm/ending/watching.h"
#include "comm/launch/device_pool.h"
#include "comm/plan/plan_context.h"
#include "comm/state/communicator.h"
#include "comm/state/membership.h"
#include "comm/state/peer_wait.h"
#include "gpu/context.h"
#include "gpu/memory_ledger.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {

namespace {

/// How long it takes at most until it is known whether calls that differ are the cause of a failure, and some more.
constexpr milliseconds kCause{3000};

/// Whether the line of any of the ring's connections says so.
bool ringUses(const ChannelSet& channels, std::string_view word) {
  for (const LinkRequest& link : channels.neighbours().ring) {
    for (const ConnectedEnd& end : channels.endsOf(link)) {
      if (end.transport.find(word) != std::string::npos) return true;
    }
  }
  return false;
}

/// What connectLinks() needs of an initialised communicator.
ConnectContext connectContext(const ncclComm& comm) {
  return ConnectContext{*comm.parts.bootstrap, comm.parts.peers, comm.parts.transports,
                        comm.parts.planning->tuning.input.slotBytes, comm.parts.proxiedMeshSlots};
}

/// Whether the tuner may take it for any collective; the same on all ranks.
bool mayTake(const Tuning& tuning, device::Algorithm algorithm) {
  return std::any_of(tuning.verdicts.begin(), tuning.verdicts.end(), [&](const auto& ofFunc) {
    const auto& row = ofFunc[static_cast<std::size_t>(algorithm)];
    return std::find(row.begin(), row.end(), Verdict::Possible) != row.end();
  });
}

void sayConnected(const PlanNeeds& needs) {
  if (needs.usesTree) info(kInit, "Connected all trees");
  if (needs.usesPat) info(kInit, "Connected binomial trees");
  if (needs.usesCollNetDirect) info(kInit, "Connected CollNet");
  if (needs.usesCollNetChain) info(kInit, "Connected Collnet Chains");
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

/// A peer that fails for calls that do not match gives its memory up before all have heard why.
Status causeOf(const ncclComm& comm, Status met) {
  if (faultOnConnection(met) != Fault::Other) return met;
  if (met.code() == ncclRemoteError && !comm.abort.raised() && comm.calls->suspect(met, lastErrorText())) {
    lookAtKernels();
    const Deadline deadline = Deadline::in(kCause);
    while (!comm.abort.raised() && !deadline.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!comm.abort.raised()) return met;
  restoreLastError(comm.abort.text());
  return comm.abort.status();
}

}  // namespace

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

Status connectMissing(ncclComm& comm, const PlanNeeds& needs, std::span<const LinkRequest> missing) {
  const PeerWait wait(comm);
  ASSIGN(const gpu::ContextGuard context, comm.parts.device->device->enter());
  ConnectContext connecting = connectContext(comm);
  connecting.peersMayBeLate = true;
  connecting.awaited = comm.progress.awaited.get();
  const Status opened = openMissing(connecting, *comm.parts.channels, missing);
  if (!opened.ok()) return causeOf(comm, opened);
  // Told once: from then on nothing of theirs is missing.
  sayConnected(needs);
  return {};
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
