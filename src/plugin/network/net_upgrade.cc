#include "plugin/network/net_upgrade.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace tutti::plugin {

namespace {

std::string textOf(const char* text) {
  return text != nullptr ? text : "";
}

/// What all versions say, with the defaults of those that say nothing else.
template <class Said>
NetProperties common(const Said& said, int device) {
  NetProperties p;
  p.name = textOf(said.name);
  p.pciPath = textOf(said.pciPath);
  p.guid = said.guid;
  p.ptrSupport = said.ptrSupport;
  if (said.speed > 0) p.speedMbps = said.speed;
  p.port = said.port;
  p.latencyUs = said.latency;
  p.maxComms = said.maxComms;
  // Version 6 began with multi-receive; 0 can only mean that the plugin has none.
  p.maxRecvs = said.maxRecvs == 0 ? 1 : said.maxRecvs;
  p.physical = {device};
  p.maxP2pBytes = MAX_NET_SIZE;
  p.maxCollBytes = MAX_COLLNET_SIZE;
  return p;
}

template <class Said>
NetProperties withDevice(const Said& said, int device) {
  NetProperties p = common(said, device);
  // Not read as the enumeration: newer plugins know kinds that it does not have.
  static_assert(sizeof(said.netDeviceType) == sizeof(p.deviceType));
  std::memcpy(&p.deviceType, &said.netDeviceType, sizeof(p.deviceType));
  p.deviceVersion = said.netDeviceVersion;
  return p;
}

template <class Said>
NetProperties withFused(const Said& said, int device) {
  NetProperties p = withDevice(said, device);
  p.regIsGlobal = said.regIsGlobal != 0;
  p.forceFlush = said.forceFlush != 0;
  // Plugins that fuse nothing may leave the list empty.
  const int children = std::clamp(said.vProps.ndevs, 0, static_cast<int>(std::size(said.vProps.devs)));
  if (children > 0) p.physical.assign(said.vProps.devs, said.vProps.devs + children);
  p.maxP2pBytes = said.maxP2pBytes;
  p.maxCollBytes = said.maxCollBytes;
  return p;
}

}  // namespace

NetProperties upgraded(const ncclNetProperties_v6_t& said, int device) {
  return common(said, device);
}

NetProperties upgraded(const ncclNetProperties_v7_t& said, int device) {
  return withDevice(said, device);
}

NetProperties upgraded(const ncclNetProperties_v8_t& said, int device) {
  NetProperties p = withDevice(said, device);
  p.regIsGlobal = said.regIsGlobal != 0;
  return p;
}

NetProperties upgraded(const ncclNetProperties_v9_t& said, int device) {
  return withFused(said, device);
}

NetProperties upgraded(const ncclNetProperties_v11_t& said, int device) {
  NetProperties p = withFused(said, device);
  p.maxMultiRequestSize = said.maxMultiRequestSize;
  return p;
}

NetProperties upgraded(const ncclNetProperties_v12_t& said, int device) {
  NetProperties p = withFused(said, device);
  p.maxMultiRequestSize = said.maxMultiRequestSize;
  p.railId = said.railId;
  p.planeId = said.planeId;
  return p;
}

std::string unusableBecause(const NetProperties& p) {
  if (p.name.empty()) return "it has no name";
  if (p.deviceType == NCCL_NET_DEVICE_UNPACK) {
    return fmt::format(
        "its data must be unpacked by kernels (NCCL_NET_DEVICE_UNPACK version {}), which tutti's cannot; "
        "only networks that the host drives are used",
        p.deviceVersion);
  }
  if (p.deviceType != NCCL_NET_DEVICE_HOST) return fmt::format("Unknown device code index {}", p.deviceType);
  if (p.maxP2pBytes == 0 || p.maxP2pBytes > static_cast<std::size_t>(NCCL_MAX_NET_SIZE_BYTES)) {
    return fmt::format("its maxP2pBytes is {}, not 1 to {}", p.maxP2pBytes, NCCL_MAX_NET_SIZE_BYTES);
  }
  if (p.maxRecvs < 0) return fmt::format("its maxRecvs is {}", p.maxRecvs);
  if (p.maxComms < 0) return fmt::format("its maxComms is {}", p.maxComms);
  return {};
}

}  // namespace tutti::plugin
