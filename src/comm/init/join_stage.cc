#include "comm/init/join_stage.h"

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <utility>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/join_options.h"
#include "comm/diagnosis/call_exchange.h"
#include "comm/diagnosis/circle_words.h"
#include "comm/diagnosis/stall_state.h"
#include "comm/ending/ending.h"
#include "comm/ending/watching.h"
#include "comm/init/report_stage.h"
#include "comm/settings/join_settings.h"
#include "comm/state/births.h"
#include "comm/state/communicator.h"
#include "comm/state/lost_peer.h"
#include "comm/state/revocation.h"

namespace tutti::comm {

namespace {

/// Told on a thread of the bootstrap: the communicator cannot go on without its peer. The text begins with whose
/// failure it is; this rank, which only hears of it, comes last.
void onPeerLost(ncclComm& comm, const bootstrap::PeerLost& lost) {
  if (comm.abort.raised() && comm.progress.ending.load()) return;
  const bool own = lost.rank == comm.identity.rank;
  const ncclResult_t code = own || concernsAllRanks(lost.why) ? lost.why.code() : ncclRemoteError;
  const OwnLastError published;  // by who raises it
  const std::string text = fmt::format("{} (heard by {})", lost.text, describeComm(comm));
  // What peers do about calls that do not match is not why the communicator fails.
  if (!comm.calls->failing()) comm.lostPeer->hear(Status(code), text, lost.corrects);
  if (lost.died) comm.births->stop(Births::Tie::Growth, Status(code), text);
  // A failure of this rank's own, which is not what others say of it.
  if (own && code != ncclRemoteError) comm.lostPeer->need().ignore();
  // Kernels may run that wait for the peer: the watch knows.
  lookAtKernels();
}

}  // namespace

JoinStep joinByIds(std::vector<ncclUniqueId> ids) {
  return [ids = std::move(ids)](bootstrap::JoinOptions& options) {
    options.ids = ids;
    return bootstrap::Bootstrap::join(options);
  };
}

Status joinBootstrap(ncclComm& comm, const JoinStep& join) {
  startReports(comm);
  bootstrap::JoinOptions options;
  options.rank = comm.identity.rank;
  options.nRanks = comm.identity.nRanks;
  options.device = comm.identity.cudaDevice;
  options.settings = joinSettings(*comm.settings);
  options.abort = &comm.abort;
  options.onPeerLost = [&comm](const bootstrap::PeerLost& lost) { onPeerLost(comm, lost); };
  options.onState = [&comm](int rank, std::span<const std::byte> state) {
    if (comm.calls->hear(rank, state)) {
      if (comm.calls->due()) lookAtKernels();
      return;
    }
    if (comm.circles->hear(rank, state)) return;
    if (!comm.revokedPeers->hear(rank, state)) comm.stalls->hear(rank, state);
  };
  options.onDeparture = [] { lookAtKernels(); };
  ASSIGN(comm.parts.bootstrap, join(options));
  noteJoined(comm);
  return {};
}

}  // namespace tutti::comm
