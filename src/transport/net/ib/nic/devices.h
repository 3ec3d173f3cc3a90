// The devices of the network over verbs: ports of NICs, and what is fused from several.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "plugin/net.h"
#include "transport/net/ib/nic/port.h"

namespace tutti::net::ib {

struct IbOptions;
struct Verbs;

/// One device: a port, or several that are used as one.
struct IbDevice {
  std::vector<int> ports;  ///< numbers in the list of ports
  std::string name;
};

/// The ports of a process and the devices that were made of them; the first devices are the ports themselves. Any
/// thread.
class IbDevices {
 public:
  explicit IbDevices(std::vector<IbPort> ports);

  int count() const;
  /// The ports of a device; empty where there is no such device.
  std::vector<const IbPort*> portsOf(int device) const;
  plugin::NetProperties properties(int device) const;
  /// Whose settings allow it. What it made stays.
  plugin::NetFusion fuse(std::span<const int> devices);
  /// `[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE`
  std::string text() const;
  std::size_t portCount() const { return ports_.size(); }
  const std::vector<IbPort>& ports() const { return ports_; }

 private:
  int placeOfPlane(int plane) const;

  std::vector<IbPort> ports_;  ///< fixed
  mutable std::mutex mutex_;
  std::vector<IbDevice> devices_;
};

/// What was found, and what was not used and why.
struct IbSearch {
  std::vector<IbPort> ports;
  std::vector<std::string> refused;  ///< "mlx5_1: ibv_open_device: Permission denied"
};

/// Opens the NICs that the settings choose and lists their active ports, by PCI address. `folder`:
/// /sys/class/infiniband. Errors: ncclInvalidUsage (NCCL_IB_HCA).
Result<IbSearch> searchIbPorts(const Verbs& verbs, const IbOptions& options, const std::string& folder);

/// Megabits per second of the encodings of ibv_port_attr: the lowest bit that is set counts.
int portSpeedMbps(std::uint32_t activeSpeed, std::uint32_t activeWidth);

/// The PCI path that ports of one card have in common: function 0, and with `functions` its virtual functions too.
std::string cardPath(const std::string& pciPath, bool functions);

/// Whether the kernel lets NICs reach GPU memory by itself (nvidia-peermem). `root`: where /sys lies, "" but in tests.
bool hasPeerMemory(const std::string& root);

}  // namespace tutti::net::ib
