#include "comm/state/communicator.h"

#include <fmt/format.h>

#include "base/host.h"
#include "base/log.h"
#include "base/threads/thread.h"
#include "bootstrap/bootstrap.h"
#include "comm/connect/awaited_peers.h"
#include "comm/diagnosis/call_exchange.h"
#include "comm/diagnosis/circle_words.h"
#include "comm/diagnosis/stall_state.h"
#include "comm/launch/graph_refs.h"
#include "comm/state/births.h"
#include "comm/state/call_gate.h"
#include "comm/state/exit_delivery.h"
#include "comm/state/family.h"
#include "comm/state/living_comms.h"
#include "comm/state/lost_peer.h"
#include "comm/state/membership.h"
#include "comm/state/op_tally.h"
#include "comm/state/red_ops.h"
#include "comm/state/registrations.h"
#include "comm/state/residence.h"
#include "comm/state/revocation.h"
#include "gpu/memory_ledger.h"
#include "ras/registry.h"
#include "trace/comm_counts.h"
#include "trace/points.h"

namespace tutti::comm {

void announceFailure(ncclComm& comm, Status why, const std::string& text, Fault fault) {
  if (!comm.parts.bootstrap) return;
  if (comm.progress.revocation->begun()) return;  // they were told of that
  if (text == kAbortedHere) return comm.parts.bootstrap->announceAbort(why);
  // Its name is put in front as peers know it, with host, process and device.
  const std::string self = describeComm(comm) + ": ";
  const bool named = fault == Fault::Own && text.starts_with(self);
  comm.parts.bootstrap->announceFailure(concernsAllRanks(why) ? why : Status(ncclRemoteError),
                                        named ? text.substr(self.size()) : text, fault == Fault::Other);
}

void failComm(ncclComm& comm, Status why, Fault fault) {
  // What failed here may only be an echo: a peer's memory is gone because that peer heard of a death before this rank.
  const std::string text = comm.abort.raised() ? comm.abort.text() : lastErrorText();
  trace::markText(trace::Kind::Failure, comm.progress.traced->number, text, static_cast<std::uint64_t>(why.code()));
  // Peers first: whoever is woken here may abort the communicator at once, and they would hear of that instead.
  announceFailure(comm, why, text, fault);
  comm.abort.raise(why, text, text);
  restoreLastError(comm.abort.text());
}

Status failedByDeparture(const ncclComm& comm, int rank, const std::string& what) {
  const bootstrap::Bootstrap& bootstrap = *comm.parts.bootstrap;
  const bool exited = bootstrap.hasExited(rank);
  return fail(exited ? ncclRemoteError : ncclInvalidUsage, "{}, but {} of {} waits for it{}",
              bootstrap.describeDeparture(rank), what, describeComm(comm),
              exited ? ". Let every rank finish what it has begun with the others before its process ends"
                     : "; do all ranks call the same operations before they destroy the communicator?");
}

bootstrap::Bootstrap* joinedBootstrap(ncclComm& comm) {
  const std::lock_guard lock(comm.progress.mutex);
  return comm.progress.joined;
}

std::string describeComm(const ncclComm& comm) {
  return fmt::format("rank {} of {} on host {}, device {}", comm.identity.rank, comm.identity.nRanks, hostName(),
                     comm.identity.cudaDevice);
}

}  // namespace tutti::comm

ncclComm::ncclComm(tutti::comm::CommIdentity who, tutti::comm::Config configuration,
                   std::shared_ptr<const tutti::comm::CommSettings> process, tutti::comm::CommOptions asked)
    : identity(std::move(who)),
      config(std::move(configuration)),
      settings(std::move(process)),
      options(std::move(asked)),
      lostPeer(std::make_unique<tutti::comm::LostPeer>(abort)),
      births(std::make_shared<tutti::comm::Births>()),
      gate(std::make_unique<tutti::comm::CallGate>()),
      redOps(std::make_unique<tutti::comm::RedOpTable>(reinterpret_cast<std::uintptr_t>(this))),
      registrations(std::make_unique<tutti::comm::Registrations>()),
      graphs(std::make_unique<tutti::comm::GraphRefs>()),
      memory(std::make_shared<tutti::gpu::MemoryLedger>()),
      residence(std::make_unique<tutti::comm::Residence>()),
      tally(std::make_unique<tutti::comm::OpTally>()),
      stalls(std::make_unique<tutti::comm::StallBoard>()),
      circles(std::make_unique<tutti::comm::CircleBoard>()),
      calls(std::make_unique<tutti::comm::CallExchange>()),
      revokedPeers(std::make_unique<tutti::comm::RevokedPeers>()),
      membership(std::make_unique<tutti::comm::Membership>()) {
  progress.revocation = std::make_unique<tutti::comm::Revocation>();
  progress.caller = tutti::threadNumber();
  progress.traced = std::make_unique<tutti::trace::CommCounts>();
  progress.awaited = std::make_shared<tutti::comm::AwaitedPeers>();
  abort.addListener([this](tutti::Status why) {
    births->stop(tutti::comm::Births::Tie::Health, why,
                 fmt::format("the communicator that this one was to be made from has failed: {}", abort.text()));
  });
  tutti::comm::LivingComms::instance().add(*this);
}

ncclComm::~ncclComm() {
  listing.reset();
  if (membership->family) membership->family->forget(*this);
  tutti::comm::LivingComms::instance().remove(*this);
  tutti::comm::ExitDelivery::instance().remove(*this);
}
