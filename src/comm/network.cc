#include "comm/network.h"

#include "base/never_destroyed.h"
#include "base/params.h"
#include "transport/net/socket/socket_net.h"

namespace tutti {

namespace {

std::vector<std::unique_ptr<NetSource>> builtInNetworks() {
  std::vector<std::unique_ptr<NetSource>> sources;
  sources.push_back(std::make_unique<SocketNetSource>(Params::process()));
  return sources;
}

/// Plugins are loaded once for a process. Never destroyed: communicators may be left when static objects go.
NetRegistry& registry() {
  static NeverDestroyed<NetRegistry> instance(Params::process().misc, builtInNetworks());
  return instance.get();
}

}  // namespace

Result<std::unique_ptr<CommNetwork>> CommNetwork::open(std::string_view wanted, const NetOpening& opening) {
  ASSIGN(std::unique_ptr<NetLease> lease, registry().assign(wanted, opening));
  ASSIGN(const int count, lease->net().devices());
  std::vector<NetProperties> devices;
  for (int device = 0; device < count; ++device) {
    ASSIGN(NetProperties properties, lease->net().properties(device));
    devices.push_back(std::move(properties));
  }
  return std::unique_ptr<CommNetwork>(new CommNetwork(std::move(lease), std::move(devices)));
}

bool CommNetwork::readsAnyMemory() const { return dynamic_cast<const SocketNet*>(&lease_->net()) != nullptr; }

std::vector<NetDeviceFacts> factsOf(const std::vector<NetProperties>& devices) {
  constexpr int kGpuMemory = static_cast<int>(PtrKind::Cuda) | static_cast<int>(PtrKind::DmaBuf);
  std::vector<NetDeviceFacts> facts;
  for (const NetProperties& device : devices) {
    NetDeviceFacts one;
    one.name = device.name;
    one.pciPath = device.pciPath;
    one.guid = device.guid;
    one.speed = device.speedMbps;
    one.port = device.port;
    one.latency = device.latencyUs;
    one.maxComms = device.maxComms;
    one.gdr = (device.ptrSupport & kGpuMemory) != 0;
    one.rail = device.railId;
    one.plane = device.planeId;
    facts.push_back(std::move(one));
  }
  return facts;
}

}  // namespace tutti
