// Ends that come up without a control channel.
#pragma once

#include "base/status.h"
#include "transport/common/transport.h"

namespace tutti::test {

/// Whether an end has come up; both ends have to be asked until they have.
inline Result<bool> comesUp(transport::Endpoint& endpoint) {
  ASSIGN(const bool ready, endpoint.ready());
  if (!ready) return false;
  return endpoint.meet();
}

}  // namespace tutti::test
