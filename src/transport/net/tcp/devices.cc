#include "transport/net/tcp/devices.h"

#include <fmt/core.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string_view>

#include "base/settings/params.h"

namespace tutti::net::tcp {

namespace {

constexpr std::size_t kMaxDevices = 16;
constexpr int kUnknownSpeedMbps = 10000;

int familyOf(std::string_view name) {
  if (name == "AF_INET") return AF_INET;
  if (name == "AF_INET6") return AF_INET6;
  return AF_UNSPEC;
}

/// `0000:3b:00.1`, the folder of a PCI function.
bool isPciFunction(std::string_view name) {
  constexpr std::string_view kShape = "xxxx:xx:xx.x";
  if (name.size() != kShape.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool digit = std::isxdigit(static_cast<unsigned char>(name[i])) != 0;
    if (kShape[i] == 'x' ? !digit : name[i] != kShape[i]) return false;
  }
  return true;
}

/// The real path of the device's folder, up to its PCI function: a virtio card, say, has a folder of its own below
/// that.
std::string pciPathOf(const std::string& folder) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath((folder + "/device").c_str(), nullptr), &std::free);
  std::string_view path = real ? std::string_view(real.get()) : std::string_view();
  while (!path.empty() && !isPciFunction(path.substr(path.rfind('/') + 1))) {
    path = path.substr(0, path.rfind('/'));
  }
  return std::string(path);
}

/// Reading fails for interfaces that have no such thing.
long readNumber(const std::string& file, int base) {
  std::ifstream in(file);
  std::string text;
  return in >> text ? std::strtol(text.c_str(), nullptr, base) : -1;
}

SocketVendor vendorOf(const std::string& folder) {
  switch (readNumber(folder + "/device/vendor", 16)) {
    case 0x1d0f:
      return SocketVendor::Aws;
    case 0x1ae0:
      return SocketVendor::Google;
    default:
      return SocketVendor::Other;
  }
}

}  // namespace

SocketDevice describeSocketDevice(const NetInterface& interface, const std::string& sysfs) {
  const std::string folder = sysfs + "/" + interface.name;
  const long speed = readNumber(folder + "/speed", 10);
  return {.interface = interface,
          .pciPath = pciPathOf(folder),
          .speedMbps = speed > 0 ? static_cast<int>(speed) : kUnknownSpeedMbps,
          .speedKnown = speed > 0,
          .vendor = vendorOf(folder)};
}

Result<InterfaceChoice> socketChoice(const Params& params) {
  InterfaceChoice choice{.names = params.sockets.ifname, .family = familyOf(params.sockets.family)};
  choice.limit = kMaxDevices;
  if (!params.sockets.commId.empty()) {
    ASSIGN(choice.subnetOf, Address::parse(params.sockets.commId, choice.family));
  }
  return choice;
}

Result<std::vector<SocketDevice>> listSocketDevices(const Params& params, const std::string& sysfs) {
  ASSIGN(const InterfaceChoice choice, socketChoice(params));
  ASSIGN(const auto all, listInterfaces());
  std::vector<SocketDevice> devices;
  for (const NetInterface& one : chooseInterfaces(all, choice)) devices.push_back(describeSocketDevice(one, sysfs));
  return devices;
}

plugin::NetProperties socketProperties(const SocketDevice& device, int index) {
  plugin::NetProperties properties;
  properties.name = device.interface.name;
  properties.pciPath = device.pciPath;
  properties.guid = static_cast<std::uint64_t>(index);
  properties.ptrSupport = static_cast<int>(plugin::PtrKind::Host);
  properties.speedMbps = device.speedMbps;
  properties.maxComms = 65536;
  properties.maxRecvs = 1;
  properties.physical = {index};
  properties.maxP2pBytes = std::size_t{1} << 40;
  properties.maxCollBytes = std::size_t{1} << 29;
  return properties;
}

std::string socketDevicesText(const std::vector<SocketDevice>& devices) {
  std::string text;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    text += fmt::format("{}[{}]{}", i == 0 ? "" : " ", i, devices[i].interface.text());
  }
  return text;
}

}  // namespace tutti::net::tcp
