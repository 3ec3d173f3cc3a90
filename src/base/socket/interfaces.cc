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

bool usable(const ifaddrs& entry, const Address& address) {
  constexpr unsigned kUp = IFF_UP | IFF_RUNNING;
  if ((entry.ifa_flags & kUp) != kUp || !address.set()) return false;
  return address.family() == AF_INET || !address.isLoopback();
}

using Test = std::function<bool(const NetInterface&)>;

/// Interfaces that pass `test`, each once.
std::vector<NetInterface> select(const std::vector<NetInterface>& all, const InterfaceChoice& choice,
                                 const Test& test) {
  std::vector<NetInterface> chosen;
  for (const NetInterface& candidate : all) {
    if (choice.family != AF_UNSPEC && candidate.address.family() != choice.family) continue;
    const bool known = std::any_of(chosen.begin(), chosen.end(),
                                   [&](const NetInterface& other) { return other.name == candidate.name; });
    if (!known && test(candidate) && chosen.size() < choice.limit) chosen.push_back(candidate);
  }
  return chosen;
}

Test byList(std::string_view list) {
  return [list](const NetInterface& candidate) { return interfaceMatches(list, candidate.name); };
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

Result<std::vector<NetInterface>> listInterfaces() {
  ifaddrs* head = nullptr;
  if (::getifaddrs(&head) != 0) {
    return fail(ncclSystemError, "Listing the network interfaces failed: {}{}", errnoText(errno), socketRemedy(errno));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(head, &::freeifaddrs);
  std::vector<NetInterface> list;
  for (const ifaddrs* entry = head; entry != nullptr; entry = entry->ifa_next) {
    Address address = Address::from(entry->ifa_addr);
    if (!usable(*entry, address)) continue;
    address.setPort(0);
    list.push_back({entry->ifa_name, address, prefixBitsOf(entry->ifa_netmask)});
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

std::vector<NetInterface> chooseInterfaces(const std::vector<NetInterface>& all, const InterfaceChoice& choice) {
  if (!choice.names.empty()) return select(all, choice, byList(choice.names));
  const Test onSubnet = [&choice](const NetInterface& candidate) {
    return choice.subnetOf.set() && candidate.address.sameSubnet(choice.subnetOf, candidate.prefixBits);
  };
  for (const Test& step :
       {byList("ib"), onSubnet, byList("^docker,lo,virbr"), byList("docker"), byList("lo"), byList("virbr")}) {
    if (auto chosen = select(all, choice, step); !chosen.empty()) return chosen;
  }
  return {};
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
