// Whether the other end of a connection has taken what was sent over it.
#pragma once

#include "base/status.h"
#include "device/direction.h"

namespace tutti::gpu {
class Device;
}
namespace tutti::transport {
class Endpoint;
}

namespace tutti::comm {

/// Whether there is nothing on its way any more: of a sender's end, the peer has consumed every step that this rank's
/// kernels were done with, and no host thread has anything left. True of a receiver's. The context must be current.
Result<bool> allTaken(const gpu::Device& device, transport::Endpoint& end, device::Direction direction);

}  // namespace tutti::comm
