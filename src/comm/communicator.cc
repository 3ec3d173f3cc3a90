#include "comm/communicator.h"

#include "base/host.h"
#include <fmt/format.h>

#include "base/log.h"
#include "comm/exit_delivery.h"

namespace tutti {

Result<std::unique_ptr<AbortWord>> AbortWord::create(const Device& device, Abort& abort) {
  ASSIGN(PinnedBuffer memory, PinnedBuffer::create(device, sizeof(std::uint32_t), "abort word"));
  std::unique_ptr<AbortWord> created(new AbortWord(std::move(memory), abort));
  abort.addMirror(created->word());
  return created;
}

AbortWord::~AbortWord() { abort_.removeMirror(word()); }

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

ncclComm::~ncclComm() { tutti::ExitDelivery::instance().remove(*this); }
