// The network of a communicator: chosen from plugins and built-in ones, with what it says of its devices.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "comm/network/device_table.h"
#include "plugin/network/collnet_lack.h"
#include "plugin/network/net.h"

namespace tutti::plugin {
class CollNet;
class NetLease;
enum class NetPart : std::uint8_t;
struct NetOpening;
struct NetVerdict;
}  // namespace tutti::plugin
namespace tutti::topo {
struct XmlElement;
struct NetDeviceFacts;
}  // namespace tutti::topo

namespace tutti::comm {

struct FusionSettings;
struct OwnNics;

/// Owns a communicator's use of a network. All connections must be closed before it goes.
class CommNetwork {
 public:
  CommNetwork(const CommNetwork&) = delete;
  ~CommNetwork();

  /// `wanted`: the name of the network, in any case; empty: any. Errors: ncclInvalidUsage naming what was tried.
  static Result<std::unique_ptr<CommNetwork>> open(std::string_view wanted, const plugin::NetOpening& opening);
  /// The same for whoever wants to know how the choice came about: null where there is none. Errors: what the chosen
  /// network says of its devices.
  static Result<std::unique_ptr<CommNetwork>> choose(std::string_view wanted, const plugin::NetOpening& opening,
                                                     std::vector<plugin::NetVerdict>& verdicts);

  /// What the machine is with these devices of the network in it: its elements, where anything is known.
  using Describe = std::function<Result<std::optional<topo::XmlElement>>(const std::vector<topo::NetDeviceFacts>&)>;
  /// Makes one device of those that belong together (nic_fusion.h), where no communicator has before: of the network's,
  /// and then of its collNet's. `describe` is asked only where the settings need to know more of the machine than bus
  /// ids. Errors: the network's alone; a collNet that fails is not used.
  Status fuse(const FusionSettings& settings, const Describe& describe);
  /// Says at INFO which devices of the network its collNet has as well, and which of its own it has alone.
  void reportCollNet() const;
  /// Says, once, that GPU memory may be given to the network as dma-bufs; those that take none are not.
  void offerDmaBufs() { dmaBufs_ = net().takesDmaBuf(); }
  bool dmaBufs() const { return dmaBufs_; }

  plugin::Net& net() const;
  /// By the network's numbers; at least one.
  const std::vector<plugin::NetProperties>& devices() const { return devices_.all; }
  /// The numbers of those that are used: not those that are parts of another one.
  const std::vector<int>& usable() const { return devices_.usable; }
  /// By the network's numbers, the collNet's for the device of that name; -1: it has none, or there is no collNet.
  const std::vector<int>& collDevices() const { return collDevices_; }
  /// Null: the network has none, or it cannot be used.
  plugin::CollNet* collNet() const;
  /// Why collNet() is null.
  const plugin::CollNetLack& collNetLack() const { return lack_; }
  /// Numbers, the network's, of usable devices that its collNet has as well.
  const std::vector<int>& collective() const { return collective_; }
  /// Those near this rank, as the machine says; until it is known, nothing.
  const OwnNics& nics() const { return *nics_; }
  void setNics(OwnNics nics);
  /// Whether messages may lie in any memory of the process, as they may for our own networks.
  bool usesAnyMemory() const;

 private:
  explicit CommNetwork(std::unique_ptr<plugin::NetLease> lease);
  static Result<std::unique_ptr<CommNetwork>> over(std::unique_ptr<plugin::NetLease> lease);
  Status fusePart(plugin::NetPart which, DeviceTable& table, const FusionSettings& settings, const Describe& describe);
  /// Takes what came of reading or fusing the collNet's devices, which may fail (PluginIsOptional).
  void takeCollNet(Result<DeviceTable> read);
  std::unique_ptr<plugin::NetLease> lease_;
  DeviceTable devices_;
  DeviceTable collNet_;           ///< empty: there is none that can be used
  std::vector<int> collDevices_;  ///< by the network's numbers
  std::vector<int> collective_;
  plugin::CollNetLack lack_;
  std::unique_ptr<OwnNics> nics_;  ///< never null
  bool dmaBufs_ = false;
};

/// What the topology has to know of these of a network's devices. `collDevices`: CommNetwork::collDevices(). `dmaBufs`:
/// GPU memory can reach it as such.
std::vector<topo::NetDeviceFacts> factsOf(const std::vector<plugin::NetProperties>& devices,
                                          std::span<const int> numbers, std::span<const int> collDevices, bool dmaBufs);

}  // namespace tutti::comm
