#include "comm/ending/call_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/diagnosis/call_exchange.h"
#include "comm/ending/watching.h"
#include "comm/state/communicator.h"
#include "comm/state/lost_peer.h"

namespace tutti::comm {

namespace {

constexpr milliseconds kSettleBound{1000};
/// What a rank has said as it left is on its way through the watch.
constexpr milliseconds kFarewellBound{300};

CallExchange::Peers peersOf(ncclComm& comm) {
  return {comm.identity.rank, [&comm](std::span<const std::byte> word) { comm.parts.bootstrap->announceState(word); },
          [&comm](int rank) {
            const topo::PeerInfo& peer = comm.parts.peers[static_cast<std::size_t>(rank)];
            return fmt::format("rank {} (host {}, device {}, pid {})", rank, peer.hostName.data(), peer.cudaDevice,
                               peer.pid);
          }};
}

Status failFor(ncclComm& comm, const std::string& text) {
  const Status why = fail(ncclInvalidUsage, "{}", text);
  failComm(comm, why, Fault::Other);
  return why;
}

}  // namespace

void compareCalls(ncclComm& comm, SteadyClock::time_point now) {
  if (comm.identity.nRanks == 1) return;
  if (const auto text = comm.calls->tick(now, peersOf(comm))) failFor(comm, *text).ignore();
}

Status settleCalls(ncclComm& comm) {
  if (comm.identity.nRanks == 1 || comm.calls->log().count() == 0) return {};
  const CallExchange::Peers peers = peersOf(comm);
  const bootstrap::Bootstrap& bootstrap = *comm.parts.bootstrap;
  if (const auto text = comm.calls->tick(SteadyClock::now(), peers)) return failFor(comm, *text);
  if (comm.calls->verified(comm.identity.rank) && comm.identity.rank != 0) return {};
  comm.calls->sayLast(peers);
  if (comm.identity.rank == 0) return {};
  lookAtKernels();  // it takes the farewells
  const Deadline whole = Deadline::in(kSettleBound);
  const Deadline farewell = Deadline::in(kFarewellBound);
  auto pause = std::chrono::microseconds(50);
  while (!comm.abort.raised() && !comm.lostPeer->heard()) {
    if (const auto text = comm.calls->tick(SteadyClock::now(), peers)) return failFor(comm, *text);
    if (comm.calls->verified(comm.identity.rank) || comm.calls->answered()) return {};
    if (whole.expired() || (bootstrap.hasLeft(0) && farewell.expired())) return {};
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(2000));
  }
  // Who has failed for what it was told of this rank's calls has said so before.
  if (const auto text = comm.calls->tick(SteadyClock::now(), peers)) return failFor(comm, *text);
  return comm.abort.status();  // the watch may have found it first
}

}  // namespace tutti::comm
