#include <fmt/format.h>

#include <fstream>

#include "base/log.h"
#include "base/settings/params.h"
#include "networks.h"
#include "transport/net/tcp/devices.h"

namespace tutti::tool {

namespace {

const char* stateText(InterfaceState state) {
  switch (state) {
    case InterfaceState::Usable:
      return "";
    case InterfaceState::Down:
      return "it is down (ip link set NAME up)";
    case InterfaceState::NotRunning:
      return "it is up, but nothing is at its other end (cable, switch)";
    case InterfaceState::NoAddress:
      return "it has no IP address";
    case InterfaceState::V6Loopback:
      return "no other host reaches ::1";
  }
  return "";
}

const char* ruleText(InterfaceRule rule) {
  switch (rule) {
    case InterfaceRule::Listed:
      return "NCCL_SOCKET_IFNAME names it";
    case InterfaceRule::Ib:
      return "interfaces whose names begin with \"ib\" come first";
    case InterfaceRule::OnSubnet:
      return "it is on the subnet of NCCL_COMM_ID's address";
    case InterfaceRule::Ordinary:
      return "it is neither docker*, lo* nor virbr*, and there is no \"ib*\"";
    case InterfaceRule::Docker:
      return "there is nothing better than docker*";
    case InterfaceRule::Loopback:
      return "there is nothing better than the loopback interface: other hosts are not reached";
    case InterfaceRule::Virtual:
      return "there is nothing better than virbr*";
  }
  return "";
}

std::string useText(InterfaceUse use, const InterfaceVerdict& verdict) {
  const bool listed = verdict.rule == InterfaceRule::Listed || !verdict.rule;
  switch (use) {
    case InterfaceUse::Taken:
      return fmt::format("used: {}", ruleText(*verdict.rule));
    case InterfaceUse::OtherFamily:
      return "left out: NCCL_SOCKET_FAMILY asks for the other family";
    case InterfaceUse::OtherRule:
      return listed ? "left out: NCCL_SOCKET_IFNAME does not name it" : "left out: a better kind of interface is there";
    case InterfaceUse::OtherAddress:
      return "left out: its interface is used with an address before this one";
    case InterfaceUse::TooMany:
      return "left out: as many as can be used are";
  }
  return {};
}

/// `why`: what became of it, in words.
std::string lineOf(const net::tcp::SocketDevice& device, const std::string& why) {
  const NetInterface& interface = device.interface;
  const std::string address = interface.address.set() ? interface.address.hostText() : "no address";
  if (!interface.address.set() && device.pciPath.empty())
    return fmt::format("  {} no address: {}\n", interface.name, why);
  const std::string speed = device.speedKnown ? fmt::format("{} Mbit/s", device.speedMbps)
                                              : fmt::format("speed not known, taken for {} Mbit/s", device.speedMbps);
  return fmt::format("  {} {}: {}\n    {}, {}, {}\n", interface.name, address, why, speed, pciText(device.pciPath),
                     numaText(device.pciPath));
}

Result<std::string> interfaces(const Params& params, const std::string& sysfs) {
  ASSIGN(const auto sights, seeInterfaces());
  ASSIGN(const InterfaceChoice choice, net::tcp::socketChoice(params));
  std::vector<NetInterface> usable;
  for (const InterfaceSight& sight : sights) {
    if (sight.state == InterfaceState::Usable) usable.push_back(sight.interface);
  }
  const InterfaceVerdict verdict = judgeInterfaces(usable, choice);
  std::string text;
  std::size_t next = 0;
  for (const InterfaceSight& sight : sights) {
    const std::string why = sight.state == InterfaceState::Usable ? useText(verdict.uses[next++], verdict)
                                                                  : fmt::format("left out: {}", stateText(sight.state));
    text += lineOf(net::tcp::describeSocketDevice(sight.interface, sysfs), why);
  }
  if (!verdict.rule) text += "  None can be used: name one of these in NCCL_SOCKET_IFNAME, or unset it\n";
  return text;
}

}  // namespace

std::string settingText(const std::string& name, const std::string& value) {
  return value.empty() ? fmt::format("{} is not set", name) : fmt::format("{}={}", name, value);
}

std::string numaText(const std::string& pciPath) {
  std::ifstream in(pciPath + "/numa_node");
  int node = -1;
  if (pciPath.empty() || !(in >> node) || node < 0) return "NUMA node not known";
  return fmt::format("NUMA node {}", node);
}

std::string pciText(const std::string& pciPath) {
  return pciPath.empty() ? "on no PCI bus" : fmt::format("PCI {}", pciPath);
}

std::string interfacesText(const Params& params, const std::string& sysfs) {
  const std::string title =
      fmt::format("Interfaces that Socket sees ({}, {})\n", settingText("NCCL_SOCKET_IFNAME", params.sockets.ifname),
                  settingText("NCCL_SOCKET_FAMILY", params.sockets.family));
  const Result<std::string> lines = interfaces(params, sysfs);
  return title + (lines.ok() ? lines.value() : fmt::format("  {}\n", lastErrorText()));
}

}  // namespace tutti::tool
