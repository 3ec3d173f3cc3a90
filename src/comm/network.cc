#include "comm/network.h"

#include <numeric>

#include "base/never_destroyed.h"
#include "base/params.h"
#include "comm/gpu_direct.h"
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

Result<std::vector<NetProperties>> propertiesOf(Net& net, int count) {
  std::vector<NetProperties> devices;
  for (int device = 0; device < count; ++device) {
    ASSIGN(NetProperties properties, net.properties(device));
    devices.push_back(std::move(properties));
  }
  return devices;
}

std::vector<int> upTo(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

Result<std::unique_ptr<CommNetwork>> CommNetwork::open(std::string_view wanted, const NetOpening& opening) {
  ASSIGN(std::unique_ptr<NetLease> lease, registry().assign(wanted, opening));
  std::unique_ptr<CommNetwork> network(new CommNetwork(std::move(lease)));
  ASSIGN(const int count, network->net().devices());
  ASSIGN(network->devices_, propertiesOf(network->net(), count));
  network->usable_ = upTo(count);
  return network;
}

Status CommNetwork::fuse(const FusionSettings& settings, const Describe& describe) {
  const auto make = [&](Net& net, int physical) -> Status {
    const std::span<const NetProperties> devices(devices_.data(), static_cast<std::size_t>(physical));
    const bool asked = !settings.forced.empty();
    if (!asked && (!net.fuses() || physical < 2 || !settings.farthest)) return {};
    std::optional<XmlElement> machine;
    if (settings.farthest.value_or(NicDistance::Port) > NicDistance::Port) {
      ASSIGN(machine, describe(factsOf(devices_, upTo(physical), dmaBufs_)));
    }
    return fuseNics(net, devices, settings, machine ? &*machine : nullptr);
  };
  ASSIGN(const int physical, lease_->fuseOnce(make));
  ASSIGN(const int count, net().devices());
  if (count == physical) return {};
  ASSIGN(devices_, propertiesOf(net(), count));
  usable_ = devicesToUse(devices_, physical, net().name());
  return {};
}

bool CommNetwork::readsAnyMemory() const {
  return dynamic_cast<const SocketNet*>(&lease_->net()) != nullptr;
}

std::vector<NetDeviceFacts> factsOf(const std::vector<NetProperties>& devices, std::span<const int> numbers,
                                    bool dmaBufs) {
  std::vector<NetDeviceFacts> facts;
  for (const int number : numbers) {
    const NetProperties& device = devices[static_cast<std::size_t>(number)];
    NetDeviceFacts one;
    one.dev = number;
    one.name = device.name;
    one.pciPath = device.pciPath;
    one.guid = device.guid;
    one.speed = device.speedMbps;
    one.port = device.port;
    one.latency = device.latencyUs;
    one.maxComms = device.maxComms;
    one.gdr = takesGpuMemory(device, dmaBufs);
    one.rail = device.railId;
    one.plane = device.planeId;
    facts.push_back(std::move(one));
  }
  return facts;
}

}  // namespace tutti
