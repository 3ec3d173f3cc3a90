// What the plugin is told by its environment (README.md has the table), and what all of its parts share: the logger.
#pragma once

#include <atomic>
#include <cstdlib>
#include <source_location>
#include <string>
#include <vector>

#include "faults.h"
#include "nccl_net.h"
#include "socket.h"

namespace switch_collnet {

/// Set by the first init; always the same.
inline std::atomic<ncclDebugLogger_t> logger{nullptr};

/// Says what went wrong, which becomes the application's ncclGetLastError(), and is what to return.
inline ncclResult_t failed(ncclResult_t code, const char* call, const std::string& why,
                           std::source_location at = std::source_location::current()) {
  logger.load()(NCCL_LOG_WARN, NCCL_NET, at.file_name(), static_cast<int>(at.line()), "switch_collnet: %s: %s", call,
                why.c_str());
  return code;
}

/// Read again by every init and every listen: a test changes it between two connections.
struct Settings {
  Address switchAt;          ///< SWITCH_COLLNET_ADDRESS; not known: the switch is a thread of node 0's process
  Address host;              ///< SWITCH_COLLNET_HOST: by which other nodes reach this one; the port is 0
  int connectMs = 5000;      ///< SWITCH_COLLNET_CONNECT_MS
  int operationMs = 600000;  ///< SWITCH_COLLNET_OPERATION_MS
  std::size_t maxCollBytes = static_cast<std::size_t>(MAX_COLLNET_SIZE);
  bool gpuMemory = false;      ///< SWITCH_COLLNET_CUDA
  bool abortOnMisuse = true;   ///< SWITCH_COLLNET_CHECKS: abort or error
  std::string statisticsFile;  ///< SWITCH_COLLNET_STATISTICS
  Faults faults;               ///< SWITCH_COLLNET_FAULTS

  /// Empty, or what is wrong with the environment.
  std::string read();
};

/// What a device is called and where it is. The same for the net and the collNet: whoever uses both finds a NIC of the
/// one by the name and the number that it has with the other.
struct Device {
  std::string name;     ///< SWITCH_COLLNET_NAMES: switch0, switch1 …
  std::string pciPath;  ///< SWITCH_COLLNET_PCI; empty: unknown
  int speed = 100000;   ///< SWITCH_COLLNET_SPEED, in Mbit/s
};

/// SWITCH_COLLNET_DEVICES of them, of which the collNet has the first SWITCH_COLLNET_COLL_DEVICES. Read once, by the
/// first caller: what a plugin says of its devices must stay where it is.
struct DeviceList {
  std::vector<Device> all;
  int coll = 0;
  std::string why;  ///< what is wrong with the environment; empty: nothing
};
const DeviceList& devices();

/// Reads what the environment says; not ncclSuccess: it cannot be used, or `call` of the collNet is told to fail.
inline ncclResult_t mayCall(const char* call, const char* fault, Settings& settings) {
  if (const std::string why = settings.read(); !why.empty()) return failed(ncclInvalidUsage, call, why);
  return settings.faults.has(fault) ? failed(ncclSystemError, call, "told to refuse") : ncclSuccess;
}

/// What init of either table does: empty, or why the plugin cannot be used.
std::string start(ncclDebugLogger_t log);

/// For messages: the host, the process and a device.
std::string ownName(int device);

/// Fills the properties of any version: what it has no member for is left out.
template <class Properties>
ncclResult_t describeDevice(int number, int known, Properties* to) {
  if (number < 0 || number >= known) {
    return failed(ncclInvalidArgument, "getProperties", "there is no device " + std::to_string(number));
  }
  Settings settings;
  if (const std::string why = settings.read(); !why.empty()) return failed(ncclInvalidUsage, "getProperties", why);
  const Device& device = devices().all[static_cast<std::size_t>(number)];
  *to = {};  // among others: the host drives the device (NCCL_NET_DEVICE_HOST)
  to->name = const_cast<char*>(device.name.c_str());
  to->pciPath = device.pciPath.empty() ? nullptr : const_cast<char*>(device.pciPath.c_str());
  to->guid = 0x5c0000u + static_cast<unsigned>(number);
  to->ptrSupport = settings.gpuMemory ? NCCL_PTR_HOST | NCCL_PTR_CUDA : NCCL_PTR_HOST;
  to->speed = device.speed;
  to->port = 1;
  to->latency = 5;
  to->maxComms = 65536;
  to->maxRecvs = 1;
  if constexpr (requires { to->forceFlush; }) to->forceFlush = settings.gpuMemory ? 1 : 0;
  if constexpr (requires { to->vProps; }) {
    to->vProps.ndevs = 1;
    to->vProps.devs[0] = number;
    to->maxP2pBytes = MAX_NET_SIZE;
    to->maxCollBytes = settings.maxCollBytes;
  }
  if constexpr (requires { to->maxMultiRequestSize; }) to->maxMultiRequestSize = 1;
  if constexpr (requires { to->railId; }) {
    to->railId = static_cast<std::int16_t>(number);  // a switch, and so a rail, for each device of a node
    to->planeId = 0;
  }
  return ncclSuccess;
}

}  // namespace switch_collnet
