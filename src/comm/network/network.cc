#include "comm/network/network.h"

#include "base/environment.h"
#include "base/log.h"
#include "base/never_destroyed.h"
#include "base/settings/params.h"
#include "comm/network/gpu_direct.h"
#include "comm/network/nic_fusion.h"
#include "comm/network/own_nics.h"
#include "plugin/network/collnet.h"
#include "plugin/network/registry.h"
#include "plugin/plugin_log.h"
#include "topo/detect/detect.h"
#include "topo/xml/xml.h"
#include "transport/net/ib/source.h"
#include "transport/net/tcp/source.h"

namespace tutti::comm {

namespace {

std::vector<std::unique_ptr<plugin::NetSource>> builtInNetworks() {
  std::vector<std::unique_ptr<plugin::NetSource>> sources;
  sources.push_back(net::ib::ibNetSource(Params::process()));
  sources.push_back(net::tcp::socketNetSource(Params::process()));
  return sources;
}

/// Plugins are loaded once for a process. Never destroyed: communicators may be left when static objects go.
plugin::NetRegistry& registry() {
  static NeverDestroyed<plugin::NetRegistry> instance(
      Params::process().misc, settingsSource().get("NCCL_NET_PLUGIN").has_value(), builtInNetworks());
  return instance.get();
}

}  // namespace

CommNetwork::CommNetwork(std::unique_ptr<plugin::NetLease> lease)
    : lease_(std::move(lease)), nics_(std::make_unique<OwnNics>()) {}

CommNetwork::~CommNetwork() = default;

void CommNetwork::setNics(OwnNics nics) {
  *nics_ = std::move(nics);
}

plugin::Net& CommNetwork::net() const {
  return lease_->net();
}

plugin::CollNet* CommNetwork::collNet() const {
  return collective_.empty() ? nullptr : lease_->collNet();
}

Result<std::unique_ptr<CommNetwork>> CommNetwork::open(std::string_view wanted, const plugin::NetOpening& opening) {
  ASSIGN(std::unique_ptr<plugin::NetLease> lease, registry().assign(wanted, opening));
  return over(std::move(lease));
}

Result<std::unique_ptr<CommNetwork>> CommNetwork::choose(std::string_view wanted, const plugin::NetOpening& opening,
                                                         std::vector<plugin::NetVerdict>& verdicts) {
  plugin::NetChoice choice = registry().choose(wanted, opening);
  verdicts = std::move(choice.verdicts);
  if (choice.lease == nullptr) return std::unique_ptr<CommNetwork>();
  return over(std::move(choice.lease));
}

Result<std::unique_ptr<CommNetwork>> CommNetwork::over(std::unique_ptr<plugin::NetLease> lease) {
  std::unique_ptr<CommNetwork> network(new CommNetwork(std::move(lease)));
  ASSIGN(network->devices_, readDevices(network->net()));
  network->lack_ = network->lease_->collNetLack();
  if (plugin::CollNet* collNet = network->lease_->collNet()) {
    const plugin::PluginIsOptional quiet;
    network->takeCollNet(readDevices(*collNet));
  }
  return network;
}

void CommNetwork::takeCollNet(Result<DeviceTable> read) {
  lack_ = {};
  if (!read.ok()) {
    lack_ = {lastErrorText(), true};
    info(kInit | kNet, "{} is not used: {}", labelOf(*lease_->collNet()), lack_.why);
  }
  collNet_ = read.ok() ? std::move(read).value() : DeviceTable{};
  collDevices_ = sameDevices(devices_, collNet_);
  collective_.clear();
  for (const int number : devices_.usable) {
    if (collDevices_[static_cast<std::size_t>(number)] >= 0) collective_.push_back(number);
  }
  if (lack_.failed || !collective_.empty()) return;
  lack_ = {labelOf(*lease_->collNet()), true};
  for (const std::string& line : collNetLines(devices_, collNet_)) lack_.why += ": " + line;
}

Status CommNetwork::fusePart(plugin::NetPart which, DeviceTable& table, const FusionSettings& settings,
                             const Describe& describe) {
  const auto make = [&](plugin::NetDevices& net, int physical) -> Status {
    const bool asked = !settings.forced.empty();
    if (!net.fuses() && (!asked || which == plugin::NetPart::CollNet)) return {};
    if (!asked && (physical < 2 || !settings.farthest)) return {};
    // Not those of `table`: the other part may have fused some since.
    ASSIGN(const DeviceTable now, readDevices(net));
    std::optional<topo::XmlElement> machine;
    if (settings.farthest.value_or(NicDistance::Port) > NicDistance::Port) {
      ASSIGN(machine, describe(factsOf(now.all, firstNumbers(physical), {}, dmaBufs_)));
    }
    return fuseNics(net, now.all, physical, settings, machine ? &*machine : nullptr);
  };
  ASSIGN(const int physical, lease_->fuseOnce(which, make));
  ASSIGN(table, readDevices(lease_->part(which), physical));
  return {};
}

Status CommNetwork::fuse(const FusionSettings& settings, const Describe& describe) {
  TRY(fusePart(plugin::NetPart::Net, devices_, settings, describe));
  if (collNet_.all.empty()) return {};
  const plugin::PluginIsOptional quiet;
  DeviceTable fused;
  const Status status = fusePart(plugin::NetPart::CollNet, fused, settings, describe);
  takeCollNet(status.ok() ? Result<DeviceTable>(std::move(fused)) : Result<DeviceTable>(status));
  return {};
}

void CommNetwork::reportCollNet() const {
  if (collNet_.all.empty()) return;
  for (const std::string& line : collNetLines(devices_, collNet_)) {
    info(kInit | kNet, "{} : {}", labelOf(*lease_->collNet()), line);
  }
}

bool CommNetwork::usesAnyMemory() const {
  return net::tcp::isSocketNet(lease_->net());
}

std::vector<topo::NetDeviceFacts> factsOf(const std::vector<plugin::NetProperties>& devices,
                                          std::span<const int> numbers, std::span<const int> collDevices,
                                          bool dmaBufs) {
  std::vector<topo::NetDeviceFacts> facts;
  for (const int number : numbers) {
    const plugin::NetProperties& device = devices[static_cast<std::size_t>(number)];
    topo::NetDeviceFacts one;
    one.dev = number;
    one.name = device.name;
    one.pciPath = device.pciPath;
    one.guid = device.guid;
    one.speed = device.speedMbps;
    one.port = device.port;
    one.latency = device.latencyUs;
    one.maxComms = device.maxComms;
    one.gdr = takesGpuMemory(device, dmaBufs);
    one.coll =
        static_cast<std::size_t>(number) < collDevices.size() && collDevices[static_cast<std::size_t>(number)] >= 0;
    one.rail = device.railId;
    one.plane = device.planeId;
    facts.push_back(std::move(one));
  }
  return facts;
}

}  // namespace tutti::comm
