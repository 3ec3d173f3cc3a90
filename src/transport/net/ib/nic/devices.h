// The devices of the network over verbs: ports of NICs, and what is fused from several.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/network/net.h"
#include "transport/net/ib/nic/port.h"
#include "transport/net/ib/nic/verbs.h"

namespace tutti::net::ib {

struct IbOptions;

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
  /// `peerMemory`: GPU memory may be registered by its address.
  plugin::NetProperties properties(int device, bool peerMemory) const;
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

/// What became of a port.
enum class PortUse : std::uint8_t {
  Used,
  NotChosen,    ///< NCCL_IB_HCA leaves it out
  NoAnswer,     ///< ibv_query_port fails
  NotActive,    ///< its link is down
  UnknownLink,  ///< neither InfiniBand nor Ethernet
  TooMany,      ///< there are as many as can be used
};

/// A port that was looked at.
struct PortSight {
  int number = 0;
  PortUse use = PortUse::Used;
  std::string chosenBy;                     ///< the part of NCCL_IB_HCA that fits it; "": none
  std::optional<ibv_port_attr> attributes;  ///< empty: it did not answer
};

/// A NIC that was looked at.
struct NicSight {
  std::string name;
  std::shared_ptr<Nic> nic;  ///< null: it cannot be used
  std::string why;           ///< then: "ibv_open_device: Permission denied"
  std::vector<PortSight> ports;
};

/// What there is, and what of it is used.
struct IbSearch {
  std::vector<IbPort> ports;   ///< those that are used
  std::vector<NicSight> seen;  ///< all NICs, as the library lists them
};

/// Opens all NICs and finds the active ports that the settings choose, by PCI address. `folder`: /sys/class/infiniband.
/// Errors: ncclInvalidUsage (NCCL_IB_HCA).
Result<IbSearch> searchIbPorts(const Verbs& verbs, const IbOptions& options, const std::string& folder);

/// What is not used though the settings choose it, and why: "mlx5_1: ibv_open_device: Permission denied", "mlx5_0:1:
/// the port is not active: it is DOWN: …".
std::vector<std::string> refusalsOf(const IbSearch& search);

/// Why a port is not used, in words; "": it is.
std::string portUseText(PortUse use);

/// What a port that is not active is instead, and who can change that: "it is DOWN: look at the cable, …".
std::string portStateText(ibv_port_state state);

/// Megabits per second of the encodings of ibv_port_attr: the lowest bit that is set counts.
int portSpeedMbps(std::uint32_t activeSpeed, std::uint32_t activeWidth);

/// The PCI path that ports of one card have in common: function 0, and with `functions` its virtual functions too.
std::string cardPath(const std::string& pciPath, bool functions);

/// The file by which the kernel shows that NICs reach GPU memory at its address (nvidia-peermem); "": it shows none.
/// `root`: where /sys lies, "" but in tests.
std::string peerMemorySign(const std::string& root);

}  // namespace tutti::net::ib
