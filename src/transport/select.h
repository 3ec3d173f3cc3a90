// Which transport connects two ranks: the first of an ordered list that can.
#pragma once

#include <memory>
#include <span>

#include "base/status.h"
#include "topo/peer_info.h"
#include "transport/transport.h"

namespace tutti {

/// The first of `transports` (in order of preference) that reaches `peer` from `self`; owned by the caller of this
/// function. As reachable() is symmetrical, both ranks pick the same. Errors: ncclSystemError "No transport found for
/// rank a[busid] -> rank b[busid]" with what each transport said, or the transport's own error.
Result<Transport*> pickTransport(std::span<const std::unique_ptr<Transport>> transports, const PeerInfo& self,
                                 const PeerInfo& peer);

}  // namespace tutti
