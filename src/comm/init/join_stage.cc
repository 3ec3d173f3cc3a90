#include "comm/init/join_stage.h"

#include <cstddef>
#include <span>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/join_options.h"
#include "comm/ending/ending.h"
#include "comm/settings/join_settings.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

namespace {

/// Told on a thread of the bootstrap: the communicator cannot go on without its peer. The text begins with whose
/// failure it is; this rank, which only hears of it, comes last.
void onPeerLost(ncclComm& comm, const bootstrap::PeerLost& lost) {
  const bool known = comm.abort.raised();
  if (known && (!lost.corrects || comm.progress.ending.load())) return;
  const bool asSaid = concernsAllRanks(lost.why) || lost.rank == comm.identity.rank;
  const ncclResult_t code = asSaid ? lost.why.code() : ncclRemoteError;
  const OwnLastError own;  // published by raise(), unless another failure was first
  const Status why = fail(code, "{} (heard by {})", lost.text, describeComm(comm));
  if (known) return comm.abort.correct(lastErrorText());
  comm.abort.raise(why, lastErrorText(), lastErrorText());
}

}  // namespace

Status joinBootstrap(ncclComm& comm, const std::vector<ncclUniqueId>& ids) {
  bootstrap::JoinOptions options;
  options.ids = ids;
  options.rank = comm.identity.rank;
  options.nRanks = comm.identity.nRanks;
  options.device = comm.identity.cudaDevice;
  options.settings = joinSettings(*comm.settings);
  options.abort = &comm.abort;
  options.onPeerLost = [&comm](const bootstrap::PeerLost& lost) { onPeerLost(comm, lost); };
  options.onState = [&comm](int rank, std::span<const std::byte> state) { comm.stalls.hear(rank, state); };
  ASSIGN(comm.parts.bootstrap, bootstrap::Bootstrap::join(options));
  noteJoined(comm);
  return {};
}

}  // namespace tutti::comm
