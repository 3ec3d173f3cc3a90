#include "transport/net/lane/lane_shutdown.h"

#include "base/log.h"

namespace tutti::net {

void LaneShutdown::note(const FailedCall& failure) {
  failure_ = failure;
  since_ = SteadyClock::now();
}

void LaneShutdown::begin(Status why, std::string_view call) {
  note({why, std::string(call), lastErrorText()});
  if (shared_ != nullptr) *shared_ = failure_;
}

bool LaneShutdown::begun() {
  if (!failure_ && shared_ != nullptr && *shared_) note(**shared_);
  return failure_.has_value();
}

Result<bool> LaneShutdown::settle(const TaskSetup& setup) {
  if (closed_) return true;
  if (setup.path.peerHasLeft()) {
    closed_ = true;
    info(kNet, "{}: closed, for {}", setup.path.text(), setup.path.departureText());
    return true;
  }
  const bool mayBeFarewell = setup.path.farewells != nullptr;
  if (mayBeFarewell && SteadyClock::now() - since_ < setup.farewellGrace) return false;
  recallLastError(failure_->said);
  return failNet(setup.path, failure_->why, failure_->call);
}

}  // namespace tutti::net
