#include "transport/net/net_lane_end.h"

#include "base/log.h"

namespace tutti::net {

void LaneEnd::begin(Status why, std::string_view call) {
  begun_ = true;
  why_ = why;
  call_ = call;
  said_ = lastErrorText();
  since_ = SteadyClock::now();
}

Result<bool> LaneEnd::settle(const TaskSetup& setup) {
  if (closed_) return true;
  if (setup.path.peerHasLeft()) {
    closed_ = true;
    info(kNet, "{}: closed, for rank {} has left the communicator", setup.path.text(), setup.path.link.peer.rank);
    return true;
  }
  const bool mayBeFarewell = static_cast<bool>(setup.path.hasLeft);
  if (mayBeFarewell && SteadyClock::now() - since_ < setup.farewellGrace) return false;
  restoreLastError(said_);
  return failNet(setup.path, why_, call_);
}

}  // namespace tutti::net
