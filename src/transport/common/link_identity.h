// Who one end of a connection is, as it tells the other end.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "transport/common/fifo_layout.h"
#include "transport/common/transport.h"

namespace tutti::transport {

/// Begins what a transport puts into a ConnectHandle. Trivially copyable.
struct LinkIdentity {
  std::uint32_t magic = 0;  ///< the transport's own
  device::Direction direction = device::Direction::Send;
  std::uint64_t bytes = 0;     ///< of the memory of such an end (fifo_layout.h)
  std::int32_t rank = -1;      ///< the owner
  std::int32_t peerRank = -1;  ///< whom the owner expects at the other end
  std::int32_t channel = -1;
  device::ConnKind kind = device::ConnKind::Graph;
  SlotBytes slotBytes{};
};

/// Of the end on this side of `link`.
LinkIdentity identityOf(const LinkSpec& link, device::Direction direction, std::uint32_t magic);

/// Whether `peer` is the other end of `link`, which `self` is this end of. `transport` begins the error. Errors:
/// ncclInternalError for another connection's end, ncclInvalidUsage for buffers of another size.
Status checkIdentity(std::string_view transport, const LinkSpec& link, const LinkIdentity& self,
                     const LinkIdentity& peer);

}  // namespace tutti::transport
