// One end of a connection over a network: becomes two network connections at most, memory, and a task that moves steps.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "gpu/ipc.h"
#include "transport/common/link_identity.h"
#include "transport/common/transport.h"
#include "transport/net/endpoint/connection.h"
#include "transport/net/endpoint/memory.h"
#include "transport/net/endpoint/sharing.h"
#include "transport/net/lane/options.h"
#include "transport/net/lane/path.h"

namespace tutti::net::pxn {
class LentPools;
}

namespace tutti::net {

/// What all ends of a transport share.
struct EndContext {
  const gpu::Device& device;
  plugin::Net& net;
  const NetTransportOptions& options;
  NetCommons& commons;   ///< must outlive the endpoint's ready() …
  pxn::LentPools& lent;  ///< … and so must those of relays
};

/// The contents of a ConnectHandle. The receiver's says where it listens.
struct WireHandle : transport::LinkIdentity {
  std::array<plugin::NetHandle, 2> listeners{};
  NicPlace nic{};
  SharingOffer sharing{};
  std::uint32_t routed = 0;   ///< a sender's: another rank may send in its stead, who stays for this communicator alone
  std::uint32_t parting = 0;  ///< bits of network connections: where a sender answers what is posted, before it ends;
                              ///< where a receiver posts ahead, and wants that
};
inline constexpr std::uint32_t kWireMagic = 0x6e65746c;
static_assert(sizeof(WireHandle) <= sizeof(transport::ConnectHandle) && std::is_trivially_copyable_v<WireHandle>);

/// WireHandle::parting of a sender over that network.
std::uint32_t partingsOfSender(const plugin::Net& net);

/// See transport.h. ready() needs the other direction to be asked as well, and so does meet(), in which the connections
/// are probed.
class NetEndpoint final : public transport::Endpoint {
 public:
  static Result<std::unique_ptr<transport::Endpoint>> open(const EndContext& context, const transport::LinkSpec& link,
                                                           device::Direction direction, const EndPlace& place);
  transport::ConnectHandle handle() const override;
  Status connect(const transport::ConnectHandle& peer) override;
  Result<bool> ready() override;
  bool calls() const override { return calls_; }
  Result<bool> meet() override;
  Status probeWrite() override { return {}; }
  Result<bool> probeCheck() override { return phase_ == Phase::Ready; }
  transport::ConnView view() const override;
  proxy::ProgressTask* task() override { return task_.get(); }
  std::string_view description() const override { return path_.description; }
  bool eachEndReports() const override { return true; }
  bool shareable() const override { return shareable_; }

 private:
  static constexpr std::size_t kSimple = 0;   ///< the network connection of the Simple protocol …
  static constexpr std::size_t kFlagged = 1;  ///< … and that of the others
  static constexpr std::size_t kConnections = 2;
  enum class Phase : std::uint8_t { Opened, Joining, Joined, Ready };

  NetEndpoint(const EndContext& context, NetPath path, const EndPlace& place);
  Status listen();
  /// Who this end is.
  transport::LinkIdentity identity() const;
  /// Whether its slots are taken in turn by all connections for messages.
  bool sharesSlots() const;
  /// What it says of parting; see WireHandle.
  std::uint32_t partings() const;
  /// What it says of sharing network connections.
  Result<SharingOffer> offer() const;
  /// The peer as ends of other communicators of the family know it.
  int peerPlace() const;
  /// Finds those with which it shares one, where both ends offer it.
  void connectShared(const SharingOffer& peers);
  Status prepare();
  /// Slots and whatever else it has in memory; slots on the device are known to the network then. Where it refuses
  /// these, slots lie in host memory.
  Status allocate();
  /// With slots where `slots_` says.
  Status allocateThere();
  /// Whether the network has taken the slots, if they lie on the device.
  bool takesDeviceSlots();
  /// Slots lie in host memory from now on.
  void leaveDevice();
  void describe();
  /// Finds the slots that it shares with other connections, if it does.
  Status joinPool();
  /// Memory of the device that the network reads or writes where kernels say so; empty: none.
  Result<NetWindow> windowForNetwork() const;
  /// Null: in host memory.
  const gpu::DeviceBuffer* deviceSlots() const;
  Status registerHostSlots();
  Result<bool> probe(std::size_t connection);
  Result<void*> postProbe(std::size_t connection);
  /// Finds out whether the network says how much it has received.
  Status checkProbe(std::size_t connection, int received);
  Status start();
  std::byte* probeAt(std::size_t connection) const;
  bool receives() const { return path_.direction == device::Direction::Recv; }

  const gpu::Device& device_;
  NetTransportOptions options_;
  NetCommons& commons_;
  NetPath path_;
  int netDevice_;
  SlotPlace slots_;
  SharingOffer offer_;
  std::shared_ptr<SharedSlots> shared_;  ///< outlives the connections, and so does …
  std::shared_ptr<EndMemory> memory_;
  NetWindow window_;
  std::array<NetLane, kConnections> lanes_{};
  std::array<std::shared_ptr<NetConnection>, kConnections> connections_;
  std::shared_ptr<SharedConnection> sharedConnection_;  ///< of the Simple protocol; null: the connection is its own
  std::shared_ptr<MultiRecv> groups_;                   ///< a receiver's
  std::array<void*, kConnections> probes_{};
  std::array<bool, kConnections> probed_{};
  Phase phase_ = Phase::Opened;
  bool calls_ = false;
  bool shareable_ = true;
  std::unique_ptr<proxy::ProgressTask> task_;
};

}  // namespace tutti::net
