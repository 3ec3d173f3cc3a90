// The network of a communicator: chosen from plugins and built-in ones, with what it says of its devices.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "comm/network/device_table.h"
#include "comm/network/nic_fusion.h"
#include "plugin/net.h"
#include "plugin/registry.h"
#include "topo/detect/detect.h"
#include "topo/xml/xml.h"

namespace tutti::comm {

/// Owns a communicator's use of a network. All connections must be closed before it goes.
class CommNetwork {
 public:
  /// `wanted`: the name of the network, in any case; empty: any. Errors: ncclInvalidUsage naming what was tried.
  static Result<std::unique_ptr<CommNetwork>> open(std::string_view wanted, const plugin::NetOpening& opening);

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

  plugin::Net& net() const { return lease_->net(); }
  /// By the network's numbers; at least one.
  const std::vector<plugin::NetProperties>& devices() const { return devices_.all; }
  /// The numbers of those that are used: not those that are parts of another one.
  const std::vector<int>& usable() const { return devices_.usable; }
  /// By the network's numbers, the collNet's for the device of that name; -1: it has none, or there is no collNet.
  const std::vector<int>& collDevices() const { return collDevices_; }
  /// Whether messages may lie in any memory of the process, as they may for our own networks.
  bool usesAnyMemory() const;

 private:
  explicit CommNetwork(std::unique_ptr<plugin::NetLease> lease) : lease_(std::move(lease)) {}
  Status fusePart(plugin::NetPart which, DeviceTable& table, const FusionSettings& settings, const Describe& describe);
  /// Takes what came of reading or fusing the collNet's devices, which may fail (PluginIsOptional).
  void takeCollNet(Result<DeviceTable> read);
  std::unique_ptr<plugin::NetLease> lease_;
  DeviceTable devices_;
  DeviceTable collNet_;           ///< empty: there is none that can be used
  std::vector<int> collDevices_;  ///< by the network's numbers
  bool dmaBufs_ = false;
};

/// What the topology has to know of these of a network's devices. `collDevices`: CommNetwork::collDevices(). `dmaBufs`:
/// GPU memory can reach it as such.
std::vector<topo::NetDeviceFacts> factsOf(const std::vector<plugin::NetProperties>& devices,
                                          std::span<const int> numbers, std::span<const int> collDevices, bool dmaBufs);

}  // namespace tutti::comm
