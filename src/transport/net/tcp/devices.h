// The devices of the built-in network: interfaces of this host, and what the system says of the cards behind them.
#pragma once

#include <string>
#include <vector>

#include "base/socket/interfaces.h"
#include "plugin/network/net.h"
#include "transport/net/tcp/options.h"

namespace tutti {
struct Params;
}

namespace tutti::net::tcp {

/// One interface as a device of the network.
struct SocketDevice {
  NetInterface interface;
  std::string pciPath;    ///< of the PCI function behind it, in sysfs; empty: virtual
  int speedMbps = 10000;  ///< 10000 where the system knows none
  bool speedKnown = false;
  SocketVendor vendor = SocketVendor::Other;
};

/// What the settings ask for, in views of `params`. Errors: ncclInvalidArgument (NCCL_COMM_ID).
Result<InterfaceChoice> socketChoice(const Params& params);

/// The interfaces that NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY select, at most 16, in system order; without a choice
/// the best kind that the host has (base/socket/interfaces.h), loopback last. Empty where none fits. `sysfs`:
/// /sys/class/net. Errors: ncclSystemError, ncclInvalidArgument (NCCL_COMM_ID).
Result<std::vector<SocketDevice>> listSocketDevices(const Params& params, const std::string& sysfs);

/// What the folder of one interface in `sysfs` says.
SocketDevice describeSocketDevice(const NetInterface& interface, const std::string& sysfs);

/// As the rest of the library sees device number `index`.
plugin::NetProperties socketProperties(const SocketDevice& device, int index);

/// `[0]eth0:10.0.0.1<0> [1]eth1:10.1.0.1<0>`
std::string socketDevicesText(const std::vector<SocketDevice>& devices);

}  // namespace tutti::net::tcp
