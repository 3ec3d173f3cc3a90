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
#include "topo/machine/peer_info.h"

namespace tutti::comm {

namespace {

/// How long others may take to say what they have called. Their watch does, whatever they do otherwise.
constexpr milliseconds kAnswers{200};
/// The same where a peer has failed, perhaps for what is about to be heard, and may not answer.
constexpr milliseconds kLastAnswers{50};

CallExchange::Peers peersOf(ncclComm& comm) {
  return {comm.identity.rank, comm.identity.nRanks,
          [&comm](std::span<const std::byte> word) { comm.parts.bootstrap->announceState(word); },
          [&comm](int rank) {
            const topo::PeerInfo& peer = comm.parts.peers[static_cast<std::size_t>(rank)];
            return fmt::format("rank {} (host {}, device {}, pid {})", rank, peer.hostName.data(), peer.cudaDevice,
                               peer.pid);
          }};
}

Status failFor(ncclComm& comm, const CallExchange::Finding& finding) {
  if (!finding.differ) {
    restoreLastError(finding.text);  // it was logged when it was met
    failComm(comm, finding.why, faultOnConnection(finding.why));
    return finding.why;
  }
  const Status why = fail(finding.why.code(), "{}", finding.text);
  announceFailure(comm, why, finding.text, Fault::Other);  // whoever hears of nothing but an abort knows why
  comm.abort.raise(why, finding.text, finding.text);
  return why;
}

/// Whether it has made calls of which somebody may have to say that others differ.
bool isToCompare(const ncclComm& comm) {
  return comm.identity.nRanks > 1 && !comm.calls->comparedBefore(SteadyClock::now(), comm.identity.rank);
}

/// Compares what has been heard.
Status compareHeard(ncclComm& comm, const CallExchange::Peers& peers) {
  const auto finding = comm.calls->tick(SteadyClock::now(), peers);
  return finding ? failFor(comm, *finding) : Status();
}

}  // namespace

void compareCalls(ncclComm& comm, SteadyClock::time_point now) {
  if (comm.identity.nRanks == 1) return;
  if (const auto finding = comm.calls->tick(now, peersOf(comm))) failFor(comm, *finding).ignore();
}

void askForCalls(ncclComm& comm) {
  if (!isToCompare(comm)) return;
  const CallExchange::Peers peers = peersOf(comm);
  compareHeard(comm, peers).ignore();  // the communicator has failed then
  comm.calls->askAll(SteadyClock::now(), peers);
}

Status settleCalls(ncclComm& comm) {
  if (!isToCompare(comm)) return mismatchOf(comm);
  const CallExchange::Peers peers = peersOf(comm);
  TRY(compareHeard(comm, peers));
  comm.calls->askAll(SteadyClock::now(), peers);
  lookAtKernels();  // it takes what those have said who have left
  const Deadline deadline = Deadline::in(kAnswers);
  const Deadline last = Deadline::in(kLastAnswers);
  auto pause = std::chrono::microseconds(20);
  while (!comm.abort.raised() && !comm.calls->answered(peers) && !deadline.expired()) {
    if (comm.lostPeer->heard() && last.expired()) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(1000));
    TRY(compareHeard(comm, peers));
  }
  TRY(mismatchOf(comm));
  // Wrong usage concerns all.
  return comm.lostPeer->loss().code() == ncclInvalidUsage ? comm.lostPeer->need() : Status();
}

Status mismatchOf(ncclComm& comm) {
  if (comm.identity.nRanks == 1 || !comm.parts.bootstrap) return {};
  // Who fails for what it was told of this rank's calls says first why: it is here, perhaps unread.
  const auto finding = comm.calls->tick(SteadyClock::now(), peersOf(comm));
  if (finding && !comm.abort.raised()) return failFor(comm, *finding);
  if (!comm.calls->differ()) return {};
  // Another thread may have found that, and be about to say so.
  const Deadline deadline = Deadline::in(kAnswers);
  while (!comm.abort.raised() && !deadline.expired()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  if (!comm.abort.raised()) return {};
  restoreLastError(comm.abort.text());
  return comm.abort.status();
}

}  // namespace tutti::comm
