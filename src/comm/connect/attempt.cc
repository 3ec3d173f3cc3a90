#include "comm/connect/attempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace tutti::comm {

void LinkAttempt::noteError(Status status) {
  if (status.ok()) return;
  good = false;
  error = status;
  errorText = lastErrorText();
}

void LinkAttempt::noteReason(std::string_view transportName, std::string_view reason) {
  reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", transportName, reason);
}

LinkAttempt LinkAttempt::next(std::string_view name) && {
  noteReason(name, error.ok()
                       ? "it was tried and does not work: its self-test did not pass, or the other side could not "
                         "open it"
                       : std::string_view(errorText));
  LinkAttempt again;
  again.request = request;
  again.transport = transport + 1;
  again.reasons = std::move(reasons);
  again.tried = true;
  again.failedHere = failedHere || !error.ok();
  return again;
}

Status LinkAttempt::connectAll(std::span<const transport::ConnectHandle> handles) {
  for (std::size_t c = 0; c < endpoints.size(); ++c) TRY(endpoints[c]->connect(handles[c]));
  return {};
}

Result<bool> LinkAttempt::allReady() {
  bool all = true;
  for (auto& endpoint : endpoints) {
    ASSIGN(const bool ready, endpoint->ready());
    all = all && ready;
  }
  return all;
}

bool LinkAttempt::allCall() const {
  return std::all_of(endpoints.begin(), endpoints.end(), [](const auto& endpoint) { return endpoint->calls(); });
}

Result<bool> LinkAttempt::allMet() {
  bool all = true;
  for (auto& endpoint : endpoints) {
    ASSIGN(const bool met, endpoint->meet());
    all = all && met;
  }
  return all;
}

Status LinkAttempt::writeProbes() {
  for (auto& endpoint : endpoints) TRY(endpoint->probeWrite());
  return {};
}

Status LinkAttempt::checkProbes() {
  for (auto& endpoint : endpoints) {
    ASSIGN(const bool arrived, endpoint->probeCheck());
    if (!arrived) good = false;
  }
  return {};
}

}  // namespace tutti::comm
