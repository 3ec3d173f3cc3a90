// What a communicator tells the transport about its network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "transport/net/lane/peer_farewells.h"
#include "transport/net/lane/routing.h"

namespace tutti::gpu {
class MemoryLedger;
}

namespace tutti::transport {
class RegisteredMemory;
}

namespace tutti::net {

struct NetCommons;

/// Communicators that use each other's connections in turn, as the one sees them that opens some: the ends that it
/// shares (Endpoint::shareable) go by this.
struct NetFamily {
  std::shared_ptr<NetCommons> commons;             ///< never null
  std::vector<int> places;                         ///< of each rank, in the family's numbering
  std::shared_ptr<const PeerFarewells> farewells;  ///< to all of them; by this communicator's numbers. Null: never
  std::string numbering;                           ///< whose numbers messages name: "communicator 0x5c"
};

/// How a communicator uses its network.
struct NetTransportOptions {
  /// Null: always the network's device 0, with slots in host memory; where its NIC is nobody knows.
  std::shared_ptr<const NetRouting> routing = {};
  /// Null: peers never leave.
  std::shared_ptr<const PeerFarewells> farewells = {};
  /// The network uses any host memory without a registration: what kernels of the software GPU offer is sent from
  /// where it lies, and messages come where they belong. For networks of our own.
  bool inPlace = false;
  /// Any other network of a software GPU: what is sent from where it lies, once the network was told of it; may be
  /// null.
  std::shared_ptr<transport::RegisteredMemory> registered = {};
  /// Keep device and network for ends that outlive the communicator, and memory that is shared with relays; may be
  /// null.
  std::shared_ptr<const void> deviceOwner = {};
  std::shared_ptr<const void> netOwner = {};
  std::shared_ptr<const NetFamily> family = {};    ///< null: none
  std::shared_ptr<gpu::MemoryLedger> ledger = {};  ///< counts the device memory of its ends; may be null
  std::array<std::byte, 32> relaySecret{};         ///< with relays: see relay/relay_wire.h
  milliseconds relayPatience{30'000};              ///< with a relay that does not answer

  /// So many slots of the Simple protocol are shared by all Mesh connections of a channel in one direction; a power of
  /// two, at most device::kMostSharedSlots. 0: each connection has its own. Each direction decides for itself.
  std::uint32_t sharedSlots = 0;
  /// With sharedSlots: Mesh connections to one rank share network connections, where the peer says so, too, and both
  /// devices take several receives in one. To be set only if some device of the network does.
  bool sharedConnections = false;
};

}  // namespace tutti::net
