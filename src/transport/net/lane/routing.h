// What the transport asks its communicator while it makes connections: which NIC, slots where, through whom.
#pragma once

#include <cstdint>
#include <optional>

#include "device/direction.h"
#include "transport/common/ranks.h"
#include "transport/common/transport.h"
#include "transport/net/lane/slot_place.h"

namespace tutti::net {

/// A NIC among those of its host, as the topology knows them; -1: not known. Trivially copyable.
struct NicPlace {
  std::int32_t number = -1;
  std::int32_t rail = -1;
};

/// One end of a connection that this rank makes itself.
struct EndPlace {
  int device = 0;        ///< of the network
  SlotPlace slots = {};  ///< of this end
};

/// How a sender's connection goes.
struct SendRoute {
  EndPlace place = {};                  ///< the network's device is the relay's where there is one; the slots are ours
  std::optional<topo::PeerInfo> relay;  ///< the rank of this host that sends in its stead; empty: it sends by itself
};

/// Threads: asked by whichever thread connects the communicator, one at a time; answers may not change meanwhile.
/// Ownership: the transport and its endpoints share it, and ask it until the last of their connections is made. What an
/// implementation looks at has to live as long.
class NetRouting {
 public:
  virtual ~NetRouting() = default;
  /// Our end of a connection, unless routeOf says how it goes.
  virtual EndPlace placeOf(const transport::LinkSpec& link, device::Direction direction) const = 0;
  /// Where a receiver's NIC is, for the sender to know.
  virtual NicPlace nicOf(const transport::LinkSpec& link) const = 0;
  /// Whether a sender's connection waits until the receiver has said where its NIC is, and then goes as routeOf says.
  virtual bool routed(const transport::LinkSpec& link) const = 0;
  /// How a sender's connection to a receiver at that NIC goes.
  virtual SendRoute routeOf(const transport::LinkSpec& link, NicPlace receiver) const = 0;
};

}  // namespace tutti::net
