// Network interfaces of this host, and which of them to use.
#pragma once

#include <cstdint>
#include <optional>
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

/// Whether an address of an interface can be used at all.
enum class InterfaceState : std::uint8_t {
  Usable,
  Down,        ///< switched off
  NotRunning,  ///< switched on, but nothing is at the other end
  NoAddress,   ///< it has no IP address
  V6Loopback,  ///< ::1, which no other host reaches and 127.0.0.1 stands for
};

/// An address of an interface, or an interface that has none.
struct InterfaceSight {
  NetInterface interface;
  InterfaceState state = InterfaceState::Usable;
};

/// All addresses of all interfaces, in system order, and behind them the interfaces that have no IP address. Errors:
/// ncclSystemError.
Result<std::vector<InterfaceSight>> seeInterfaces();

/// Those of them that are usable. Errors: ncclSystemError.
Result<std::vector<NetInterface>> listInterfaces();

/// By what interfaces are chosen: the first of these that any fits.
enum class InterfaceRule : std::uint8_t {
  Listed,    ///< NCCL_SOCKET_IFNAME; where it is set, nothing else counts
  Ib,        ///< "ib*"
  OnSubnet,  ///< on the subnet of NCCL_COMM_ID's address
  Ordinary,  ///< any but docker*, lo*, virbr*
  Docker,    ///< "docker*"
  Loopback,  ///< "lo*"
  Virtual,   ///< "virbr*"
};

/// What became of one address.
enum class InterfaceUse : std::uint8_t {
  Taken,
  OtherFamily,   ///< NCCL_SOCKET_FAMILY asks for the other one
  OtherRule,     ///< the rule that counts does not fit it
  OtherAddress,  ///< its interface is taken with an address before this one
  TooMany,       ///< there are as many as can be used
};

struct InterfaceVerdict {
  std::optional<InterfaceRule> rule;  ///< that counted; empty: none fits anything
  std::vector<InterfaceUse> uses;     ///< of each candidate
};

/// Which of `all` are used, and why the others are not. Pure.
InterfaceVerdict judgeInterfaces(const std::vector<NetInterface>& all, const InterfaceChoice& choice);

/// Interfaces to use, each once, in the order of `all`; empty where none fits. Pure.
std::vector<NetInterface> chooseInterfaces(const std::vector<NetInterface>& all, const InterfaceChoice& choice);

/// The interface for the bootstrap of this process, by NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY.
/// `subnetOf`: address of NCCL_COMM_ID, or unset. Errors: ncclInvalidUsage (nothing fits what was asked for; lists what
/// there is), ncclSystemError.
Result<NetInterface> bootstrapInterface(std::string_view names, std::string_view family, const Address& subnetOf = {});

/// Whether `name` is selected by a list in the grammar of NCCL_SOCKET_IFNAME.
bool interfaceMatches(std::string_view list, std::string_view name);

}  // namespace tutti
