#include "base/socket/interfaces.h"

#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/socket/errors.h"

namespace tutti {

namespace {

unsigned prefixBitsOf(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  if (mask->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, mask, sizeof(v4));
    return static_cast<unsigned>(std::popcount(v4.sin_addr.s_addr));
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, mask, sizeof(v6));
  unsigned bits = 0;
  for (const unsigned char byte : v6.sin6_addr.s6_addr) bits += static_cast<unsigned>(std::popcount(byte));
  return bits;
}

InterfaceState stateOf(const ifaddrs& entry, const Address& address) {
  if ((entry.ifa_flags & IFF_UP) == 0) return InterfaceState::Down;
  if ((entry.ifa_flags & IFF_RUNNING) == 0) return InterfaceState::NotRunning;
  if (!address.set()) return InterfaceState::NoAddress;
  return address.family() != AF_INET && address.isLoopback() ? InterfaceState::V6Loopback : InterfaceState::Usable;
}

bool knows(const std::vector<InterfaceSight>& sights, std::string_view name) {
  return std::any_of(sights.begin(), sights.end(),
                     [&](const InterfaceSight& sight) { return sight.interface.name == name; });
}

using Test = std::function<bool(const NetInterface&)>;

struct Rule {
  InterfaceRule name;
  Test fits;
};

Test byList(std::string_view list) {
  return [list](const NetInterface& candidate) { return interfaceMatches(list, candidate.name); };
}

/// In the order in which they are tried.
std::vector<Rule> rulesOf(const InterfaceChoice& choice) {
  if (!choice.names.empty()) return {{InterfaceRule::Listed, byList(choice.names)}};
  const Test onSubnet = [&choice](const NetInterface& candidate) {
    return choice.subnetOf.set() && candidate.address.sameSubnet(choice.subnetOf, candidate.prefixBits);
  };
  return {{InterfaceRule::Ib, byList("ib")},
          {InterfaceRule::OnSubnet, onSubnet},
          {InterfaceRule::Ordinary, byList("^docker,lo,virbr")},
          {InterfaceRule::Docker, byList("docker")},
          {InterfaceRule::Loopback, byList("lo")},
          {InterfaceRule::Virtual, byList("virbr")}};
}

/// What becomes of each candidate where this rule counts.
std::vector<InterfaceUse> usesBy(const Rule& rule, const std::vector<NetInterface>& all,
                                 const InterfaceChoice& choice) {
  std::vector<InterfaceUse> uses;
  std::vector<std::string_view> taken;
  for (const NetInterface& candidate : all) {
    InterfaceUse use = InterfaceUse::Taken;
    if (choice.family != AF_UNSPEC && candidate.address.family() != choice.family) {
      use = InterfaceUse::OtherFamily;
    } else if (!rule.fits(candidate)) {
      use = InterfaceUse::OtherRule;
    } else if (std::find(taken.begin(), taken.end(), candidate.name) != taken.end()) {
      use = InterfaceUse::OtherAddress;
    } else if (taken.size() == choice.limit) {
      use = InterfaceUse::TooMany;
    } else {
      taken.push_back(candidate.name);
    }
    uses.push_back(use);
  }
  return uses;
}

int familyOf(std::string_view name) {
  if (name == "AF_INET") return AF_INET;
  if (name == "AF_INET6") return AF_INET6;
  return AF_UNSPEC;
}

std::string describe(const std::vector<NetInterface>& all) {
  std::string text;
  for (const NetInterface& one : all) text += fmt::format("{}{}", text.empty() ? "" : ", ", one.text());
  return text.empty() ? "none" : text;
}

}  // namespace

Result<std::vector<InterfaceSight>> seeInterfaces() {
  ifaddrs* head = nullptr;
  if (::getifaddrs(&head) != 0) {
    return fail(ncclSystemError, "Listing the network interfaces failed: {}{}", errnoText(errno), socketRemedy(errno));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(head, &::freeifaddrs);
  std::vector<InterfaceSight> sights;
  for (const ifaddrs* entry = head; entry != nullptr; entry = entry->ifa_next) {
    Address address = Address::from(entry->ifa_addr);
    if (!address.set()) continue;
    address.setPort(0);
    sights.push_back({{entry->ifa_name, address, prefixBitsOf(entry->ifa_netmask)}, stateOf(*entry, address)});
  }
  for (const ifaddrs* entry = head; entry != nullptr; entry = entry->ifa_next) {
    if (!knows(sights, entry->ifa_name)) sights.push_back({{entry->ifa_name, {}, 0}, stateOf(*entry, {})});
  }
  return sights;
}

Result<std::vector<NetInterface>> listInterfaces() {
  ASSIGN(auto sights, seeInterfaces());
  std::vector<NetInterface> list;
  for (InterfaceSight& sight : sights) {
    if (sight.state == InterfaceState::Usable) list.push_back(std::move(sight.interface));
  }
  return list;
}

bool interfaceMatches(std::string_view list, std::string_view name) {
  const bool exclude = list.starts_with('^');
  if (exclude) list.remove_prefix(1);
  const bool exact = list.starts_with('=');
  if (exact) list.remove_prefix(1);
  bool listed = false;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view token = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (!token.empty()) listed = listed || (exact ? name == token : name.starts_with(token));
  }
  return listed != exclude;
}

InterfaceVerdict judgeInterfaces(const std::vector<NetInterface>& all, const InterfaceChoice& choice) {
  InterfaceVerdict verdict;
  for (const Rule& rule : rulesOf(choice)) {
    verdict.uses = usesBy(rule, all, choice);
    if (std::find(verdict.uses.begin(), verdict.uses.end(), InterfaceUse::Taken) == verdict.uses.end()) continue;
    verdict.rule = rule.name;
    return verdict;
  }
  return verdict;
}

std::vector<NetInterface> chooseInterfaces(const std::vector<NetInterface>& all, const InterfaceChoice& choice) {
  const InterfaceVerdict verdict = judgeInterfaces(all, choice);
  std::vector<NetInterface> chosen;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (verdict.uses[i] == InterfaceUse::Taken) chosen.push_back(all[i]);
  }
  return chosen;
}

Result<NetInterface> bootstrapInterface(std::string_view names, std::string_view family, const Address& subnetOf) {
  ASSIGN(const auto all, listInterfaces());
  const auto chosen = chooseInterfaces(all, {.names = names, .family = familyOf(family), .subnetOf = subnetOf});
  if (!chosen.empty()) return chosen.front();
  return fail(ncclInvalidUsage,
              "Bootstrap : no socket interface found with NCCL_SOCKET_IFNAME=\"{}\" NCCL_SOCKET_FAMILY=\"{}\". "
              "This host has: {}. Unset the variables or name one of these",
              names, family, describe(all));
}

}  // namespace tutti
