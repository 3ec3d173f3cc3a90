// Network interfaces of this host, and which of them to use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/socket/address.h"
#include "base/status.h"

namespace tutti {

/// One usable address of a network interface.
struct NetInterface {
  std::string name;
  Address address;          ///< port 0
  unsigned prefixBits = 0;  ///< length of the subnet's prefix
  /// `eth0:10.0.0.1<0>`
  std::string text() const { return name + ":" + address.text(); }
};

/// What the user asked for; see docs/env.md.
struct InterfaceChoice {
  std::string_view names;  ///< NCCL_SOCKET_IFNAME: `[^][=]name,name`; empty: automatic
  int family = AF_UNSPEC;  ///< NCCL_SOCKET_FAMILY
  Address subnetOf;        ///< address of NCCL_COMM_ID where set
  std::size_t limit = 16;
};

/// All addresses of interfaces that are up and running, in system order; IPv6 loopback is left out.
/// Errors: ncclSystemError.
Result<std::vector<NetInterface>> listInterfaces();

/// Interfaces to use, best first, each once; empty where none fits. Pure. Order: those named, or else prefix "ib", on
/// the subnet of `subnetOf`, any but docker*/lo/virbr*, docker*, lo, virbr*: the first of these steps that has any.
std::vector<NetInterface> chooseInterfaces(const std::vector<NetInterface>& all, const InterfaceChoice& choice);

/// The interface for the bootstrap of this process, by NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY.
/// `subnetOf`: address of NCCL_COMM_ID, or unset. Errors: ncclInvalidUsage (nothing fits what was asked for; lists what
/// there is), ncclSystemError.
Result<NetInterface> bootstrapInterface(std::string_view names, std::string_view family, const Address& subnetOf = {});

/// Whether `name` is selected by a list in the grammar of NCCL_SOCKET_IFNAME.
bool interfaceMatches(std::string_view list, std::string_view name);

}  // namespace tutti
