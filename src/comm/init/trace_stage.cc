#include "comm/init/trace_stage.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/settings/params.h"
#include "bootstrap/bootstrap.h"
#include "comm/settings/version.h"
#include "comm/state/communicator.h"
#include "topo/machine/peer_info.h"
#include "trace/clock_offset.h"
#include "trace/comm_counts.h"
#include "trace/on.h"
#include "trace/session.h"

namespace tutti::comm {

namespace {

/// By host, the lowest rank that traces. The same on all ranks.
std::map<std::uint64_t, int> tracersOf(const std::vector<topo::PeerInfo>& peers) {
  std::map<std::uint64_t, int> tracers;
  for (const topo::PeerInfo& peer : peers) {
    if (peer.traced != 0) tracers.emplace(peer.hostHash, peer.rank);
  }
  return tracers;
}

}  // namespace

void startTrace(int rank) {
  const Params& params = Params::process();
  trace::start({params.debug.trace, static_cast<std::uint64_t>(params.debug.traceMb), params.sockets.hostId},
               versionText(), rank);
}

void traceComm(ncclComm& comm) {
  startTrace(comm.identity.rank);
  if (!trace::on()) return;
  const CommIdentity& id = comm.identity;
  comm.progress.traced->number = trace::addComm(id.commId, id.rank, id.nRanks, id.cudaDevice, comm.config.commName);
}

Status shareClocks(ncclComm& comm) {
  const std::map<std::uint64_t, int> tracers = tracersOf(comm.parts.peers);
  if (tracers.size() < 2) return {};
  int first = comm.identity.nRanks;
  for (const auto& [host, rank] : tracers) first = std::min(first, rank);
  bootstrap::Bootstrap& channel = *comm.parts.bootstrap;
  const auto hostOf = [&](int rank) { return comm.parts.peers[static_cast<std::size_t>(rank)].hostHash; };
  for (const auto& [host, rank] : tracers) {
    if (rank == first) continue;
    if (comm.identity.rank == first) TRY(trace::answerClock(channel, rank));
    if (comm.identity.rank != rank) continue;
    ASSIGN(const trace::ClockOffset found, trace::askClock(channel, first));
    trace::addClock(hostOf(first), found.offset, found.error);
  }
  return {};
}

}  // namespace tutti::comm
