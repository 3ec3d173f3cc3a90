#include "comm/communicator.h"

#include "base/host.h"
#include <fmt/format.h>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/abort_word.h"
#include "comm/background.h"
#include "comm/channels.h"
#include "comm/device_pool.h"
#include "comm/exit_delivery.h"
#include "comm/launch.h"
#include "comm/network.h"
#include "comm/plan.h"
#include "comm/relays.h"
#include "comm/runtime.h"
#include "comm/stalls.h"
#include "proxy/engine.h"
#include "topo/rank_layout.h"
#include "transport/transport.h"

namespace tutti {

CommParts::CommParts() : planning(std::make_unique<PlanContext>()) {}
CommParts::CommParts(CommParts&& other) noexcept = default;
CommParts::~CommParts() = default;

void failComm(ncclComm& comm, Status why) {
  // What failed here may only be an echo: a peer's memory is gone because that peer heard of a death before this rank.
  std::string text = comm.abort.raised() ? comm.abort.text() : lastErrorText();
  comm.abort.raise(why, text, text);
  restoreLastError(comm.abort.text());
  if (!comm.parts.bootstrap) return;
  comm.parts.bootstrap->announceFailure(concernsAllRanks(why) ? why : Status(ncclRemoteError), std::move(text));
}

std::string describeComm(const ncclComm& comm) {
  return fmt::format("rank {} of {} on host {}, device {}", comm.identity.rank, comm.identity.nRanks, hostName(),
                     comm.identity.cudaDevice);
}

}  // namespace tutti

ncclComm::ncclComm(tutti::CommIdentity who, tutti::Config settings, tutti::Runtime process)
    : identity(std::move(who)), config(std::move(settings)),
      runtime(std::make_unique<const tutti::Runtime>(std::move(process))), redOps(reinterpret_cast<std::uintptr_t>(this)) {}

ncclComm::~ncclComm() { tutti::ExitDelivery::instance().remove(*this); }
