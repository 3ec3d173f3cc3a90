// The devices of a network and those of its collNet, and which of them are the same.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "plugin/network/net.h"

namespace tutti::comm {

/// What a network, or a collNet, says of its devices.
struct DeviceTable {
  std::vector<plugin::NetProperties> all;  ///< by its numbers
  std::vector<int> usable;                 ///< numbers of those that are used: not those that are parts of another one
};

/// 0, 1, … up to `count` of them.
std::vector<int> firstNumbers(int count);

/// Asks for all devices. `physical`: how many of them are no fused ones; -1: all.
Result<DeviceTable> readDevices(plugin::NetDevices& net, int physical = -1);

/// By the network's numbers: the collNet's usable device of the same name; -1: none, or the network's is not usable.
std::vector<int> sameDevices(const DeviceTable& net, const DeviceTable& collNet);

/// What is to be said of a collNet beside its network: the devices that collectives could use, those that differ in
/// number, and those that the other does not have.
std::vector<std::string> collNetLines(const DeviceTable& net, const DeviceTable& collNet);

}  // namespace tutti::comm
