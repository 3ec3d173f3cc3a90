// The network of a communicator: chosen from plugins and built-in ones, with what it says of its devices.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plugin/net.h"
#include "plugin/registry.h"
#include "topo/detect.h"

namespace tutti {

/// Owns a communicator's use of a network. All connections must be closed before it goes.
class CommNetwork {
 public:
  /// `wanted`: the name of the network, in any case; empty: any. Errors: ncclInvalidUsage naming what was tried.
  static Result<std::unique_ptr<CommNetwork>> open(std::string_view wanted, const NetOpening& opening);

  Net& net() const { return lease_->net(); }
  /// By the network's numbers; at least one.
  const std::vector<NetProperties>& devices() const { return devices_; }
  int nDevices() const { return static_cast<int>(devices_.size()); }
  /// Whether messages may lie in any memory of the process, as they may for our own networks.
  bool readsAnyMemory() const;

 private:
  CommNetwork(std::unique_ptr<NetLease> lease, std::vector<NetProperties> devices)
      : lease_(std::move(lease)), devices_(std::move(devices)) {}
  std::unique_ptr<NetLease> lease_;
  std::vector<NetProperties> devices_;
};

/// What the topology has to know of a network's devices.
std::vector<NetDeviceFacts> factsOf(const std::vector<NetProperties>& devices);

}  // namespace tutti
