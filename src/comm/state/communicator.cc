#include "comm/state/communicator.h"

#include <fmt/format.h>
#include "base/host.h"

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/state/exit_delivery.h"

namespace tutti::comm {

void failComm(ncclComm& comm, Status why) {
  // What failed here may only be an echo: a peer's memory is gone because that peer heard of a death before this rank.
  const std::string text = comm.abort.raised() ? comm.abort.text() : lastErrorText();
  comm.abort.raise(why, text, text);
  restoreLastError(comm.abort.text());
  if (!comm.parts.bootstrap) return;
  comm.parts.bootstrap->announceFailure(concernsAllRanks(why) ? why : Status(ncclRemoteError), text);
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
      redOps(reinterpret_cast<std::uintptr_t>(this)) {}

ncclComm::~ncclComm() {
  tutti::comm::ExitDelivery::instance().remove(*this);
}
