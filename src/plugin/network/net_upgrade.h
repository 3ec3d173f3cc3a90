// What plugins of each version say of a device, as the newest version would say it. Pure functions.
#pragma once

#include <string>

#include "nccl_net.h"
#include "plugin/network/net.h"

namespace tutti::plugin {

/// What version 9 and older cannot say themselves: the longest message and the largest collective of versions 6 to 8, a
/// single request, no rail. `device` is the number that was asked for.
NetProperties upgraded(const ncclNetProperties_v6_t& said, int device);
NetProperties upgraded(const ncclNetProperties_v7_t& said, int device);
NetProperties upgraded(const ncclNetProperties_v8_t& said, int device);
NetProperties upgraded(const ncclNetProperties_v9_t& said, int device);  ///< and 10
NetProperties upgraded(const ncclNetProperties_v11_t& said, int device);
NetProperties upgraded(const ncclNetProperties_v12_t& said, int device);

/// The same for devices of a collNet, where versions 7 and 8 do not speak of kernels that drive the device.
template <class Properties>
NetProperties upgradedForCollNet(const Properties& said, int device) {
  NetProperties properties = upgraded(said, device);
  if constexpr (sizeof(Properties) <= sizeof(ncclNetProperties_v8_t)) {
    properties.deviceType = NCCL_NET_DEVICE_HOST;
    properties.deviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
  }
  return properties;
}

/// Why a device with these properties cannot be used; "": it can.
std::string unusableBecause(const NetProperties& properties);

}  // namespace tutti::plugin
