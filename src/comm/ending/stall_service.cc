#include "comm/ending/stall_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "comm/diagnosis/stalls.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

namespace {

/// Whether it can be asked at all what it waits for.
bool answers(const ncclComm& comm) {
  return comm.parts.stalls != nullptr && !comm.abort.raised();
}

std::string linesOf(ncclComm& comm) {
  std::string text = fmt::format("communicator {:#x}\n", comm.identity.commId);
  if (comm.abort.raised())
    return text + fmt::format("  {}: it has failed: {}\n", describeComm(comm), comm.abort.text());
  if (!comm.parts.stalls) return text + fmt::format("  {}: a lone rank waits for nobody\n", describeComm(comm));
  const std::vector<std::string> lines = comm.parts.stalls->takeAnswer();
  if (lines.empty()) return text + fmt::format("  {}: no answer in time\n", describeComm(comm));
  for (const std::string& line : lines) text += fmt::format("  {}\n", line);
  return text;
}

}  // namespace

void StallService::open() {
  if (service_.open(kStallsTopic).ok()) return;
  info(kInit, "tutti-info cannot ask this process about stalls: no local socket ({})", errnoText(errno));
}

void StallService::close() {
  service_.close();
  inquired_ = false;
}

void StallService::serve(std::span<ncclComm* const> comms, SteadyClock::time_point now,
                         const std::function<std::vector<std::string>()>& others) {
  if (service_.asked(now)) {
    if (!inquired_) {
      inquired_ = true;
      since_ = now;
      for (ncclComm* comm : comms) {
        if (answers(*comm)) comm->parts.stalls->inquire();
      }
      return;
    }
    const bool pending = std::any_of(comms.begin(), comms.end(), [](const ncclComm* comm) {
      return answers(*comm) && comm->parts.stalls->pending();
    });
    if (pending && now - since_ < kPatience) return;
    std::string text;
    for (ncclComm* comm : comms) text += linesOf(*comm);
    for (const std::string& line : others()) text += line + "\n";
    service_.give(std::move(text));
    inquired_ = false;
  }
  service_.send(now);
}

}  // namespace tutti::comm
