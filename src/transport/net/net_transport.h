// NET: both ends keep their slots to themselves, and a host thread at each moves what is in them over a network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "gpu/context.h"
#include "plugin/net.h"
#include "transport/transport.h"

namespace tutti {

/// Where the slots of the Simple protocol lie at one end of a connection.
struct SlotPlace {
  bool onDevice = false;  ///< in device memory, which the network reads or writes itself; else in host memory
  bool dmaBuf = false;    ///< … and is given it as a dma-buf
  bool flushes = false;   ///< what was received there has to be flushed before a kernel may look
};

/// A NIC among those of its host, as the topology knows them; -1: not known. Trivially copyable.
struct NicPlace {
  std::int32_t number = -1;
  std::int32_t rail = -1;
};

/// How a sender's connection goes.
struct SendRoute {
  int device = 0;                 ///< of the network
  SlotPlace slots = {};           ///< of the sender's own end
  std::optional<PeerInfo> relay;  ///< the rank of this host that sends in its stead; empty: it sends by itself
};

namespace net {
class SharedPools;
class SharedJoins;
}
namespace relay {
class LentPools;
}

/// How a communicator uses its network.
struct NetTransportOptions {
  /// The network's device for our side of a connection; none: always device 0.
  std::function<int(const LinkSpec& link, bool sends)> deviceOf = {};
  /// Whether a peer has said goodbye; none: never. What its connections come to then is no failure. Any thread.
  std::function<bool(int peer)> hasLeft = {};
  /// The network uses any host memory without a registration: what kernels of the software GPU offer is sent from
  /// where it lies, and messages come where they belong. For networks of our own.
  bool inPlace = false;
  /// None: always in host memory.
  std::function<SlotPlace(const LinkSpec& link, bool sends)> slotsOf = {};
  /// Where a receiver's NIC is, for the sender to know; none: not known.
  std::function<NicPlace(const LinkSpec& link)> nicOf = {};
  /// Whether routeOf is asked about a sender's connection; none: never.
  std::function<bool(const LinkSpec& link)> routed = {};
  /// How a sender's connection to a receiver at that NIC goes, instead of deviceOf and slotsOf.
  std::function<SendRoute(const LinkSpec& link, NicPlace receiver)> routeOf = {};
  /// With routeOf: keeps `device` for memory that is shared with relays; may be null.
  std::shared_ptr<const void> deviceOwner = {};
  std::array<std::byte, 32> relaySecret{};  ///< with routeOf: see relay/relay_wire.h
  milliseconds relayPatience{30'000};       ///< with a relay that does not answer

  /// So many slots of the Simple protocol are shared by all Mesh connections of a channel in one direction; a power of
  /// two, at most device::kMostSharedSlots. 0: each connection has its own. Each side decides for itself.
  std::uint32_t sharedSlots = 0;
  /// With sharedSlots: Mesh connections to one rank share network connections, where the peer says so, too, and both
  /// devices take several receives in one. To be set only if some device of the network does.
  bool sharedJoins = false;
};

/// See transport.h. `device` and `net` must outlive the transport and its endpoints. It can join any two ranks, so it
/// belongs at the end of the list.
class NetTransport final : public Transport {
 public:
  NetTransport(const Device& device, Net& net, NetTransportOptions options);
  std::string_view name() const override { return "NET"; }
  Result<bool> reachable(const PeerInfo& self, const PeerInfo& peer) const override;
  std::string whyNot(const PeerInfo& self, const PeerInfo& peer) const override;
  /// Lines of LL128 are written by the host in order. A kernel of the software GPU sees them so, and host threads see
  /// those of such a kernel; nobody promises that of a GPU and host memory.
  Result<LinkQuality> judge(const PeerInfo& self, const PeerInfo& peer) const override;
  bool proxied() const override { return true; }
  Result<std::unique_ptr<Endpoint>> openSend(const LinkSpec& link) override;
  Result<std::unique_ptr<Endpoint>> openRecv(const LinkSpec& link) override;

 private:
  const Device* device_;
  Net* net_;
  NetTransportOptions options_;
  std::shared_ptr<net::SharedPools> pools_;
  std::shared_ptr<relay::LentPools> lent_;
  std::shared_ptr<net::SharedJoins> joins_;
};

}  // namespace tutti
