#include "transport/net/ib/nic/gid.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace tutti::net::ib {

namespace {

constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr int kMappedBits = 96;

/// How far from the wish an entry is: 0 is as wished.
int distanceOf(const GidFlaws& flaws) {
  constexpr int kLinkLocal = 16;
  constexpr int kOutside = 8;
  constexpr int kVersion = 4;
  constexpr int kFamily = 1;
  return (flaws.linkLocal ? kLinkLocal : 0) + (flaws.outside ? kOutside : 0) + (flaws.otherVersion ? kVersion : 0) +
         (flaws.otherFamily ? kFamily : 0);
}

std::string doubtOf(const GidFlaws& flaws, const GidWish& wish) {
  if (flaws.linkLocal) return "it is link-local: give the interface an IP address that peers can reach";
  if (flaws.outside) return "none is within NCCL_IB_ADDR_RANGE";
  if (flaws.otherVersion) {
    return fmt::format("none is of RoCE version {} (NCCL_IB_ROCE_VERSION_NUM)", wish.roceVersion);
  }
  return {};
}

}  // namespace

GidFamily familyOf(const Gid& gid) {
  return std::equal(kMapped.begin(), kMapped.end(), gid.begin()) ? GidFamily::Ipv4 : GidFamily::Ipv6;
}

bool isZero(const Gid& gid) {
  return gid == Gid{};
}

bool isLinkLocal(const Gid& gid) {
  constexpr std::array<std::uint8_t, 8> kPrefix{0xfe, 0x80};
  return std::equal(kPrefix.begin(), kPrefix.end(), gid.begin());
}

std::string gidText(const Gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::inet_ntop(AF_INET6, gid.data(), text.data(), text.size()) == nullptr) return "?";
  return text.data();
}

GidRange GidRange::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {};
  const std::string address(text.substr(0, slash));
  const std::string_view length = text.substr(slash + 1);
  GidRange range;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), range.bits);
  if (error != std::errc() || end != length.data() + length.size() || range.bits < 0) return {};
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1 && range.bits <= 32) {
    std::copy(kMapped.begin(), kMapped.end(), range.first.begin());
    std::memcpy(range.first.data() + kMapped.size(), &v4, sizeof(v4));
    range.bits += kMappedBits;
    return range;
  }
  if (::inet_pton(AF_INET6, address.c_str(), range.first.data()) == 1 && range.bits <= 128) return range;
  return {};
}

bool GidRange::contains(const Gid& gid) const {
  for (int bit = 0; bit < bits; bit += 8) {
    const int equal = std::min(8, bits - bit);
    const auto mask = static_cast<std::uint8_t>(0xff << (8 - equal));
    const auto place = static_cast<std::size_t>(bit / 8);
    if (((gid[place] ^ first[place]) & mask) != 0) return false;
  }
  return true;
}

GidFlaws flawsOf(const GidEntry& entry, const GidWish& wish) {
  return {.unset = isZero(entry.gid),
          .linkLocal = isLinkLocal(entry.gid),
          .outside = !wish.range.contains(entry.gid),
          .otherVersion = entry.roceVersion != wish.roceVersion,
          .otherFamily = familyOf(entry.gid) != wish.family};
}

GidChoice chooseGid(std::span<const GidEntry> table, const GidWish& wish) {
  if (wish.index >= 0) {
    const auto named =
        std::find_if(table.begin(), table.end(), [&](const GidEntry& e) { return e.index == wish.index; });
    if (named != table.end()) return {.entry = *named, .doubt = {}, .reason = GidReason::Named};
    return {.entry = {.index = wish.index},
            .doubt = "it is not set, but NCCL_IB_GID_INDEX asks for it",
            .reason = GidReason::Named};
  }
  const GidEntry* best = nullptr;
  int least = 0;
  for (const GidEntry& entry : table) {
    const GidFlaws flaws = flawsOf(entry, wish);
    const int distance = distanceOf(flaws);
    if (flaws.unset || (best != nullptr && distance >= least)) continue;
    best = &entry;
    least = distance;
  }
  if (best == nullptr) return {.entry = {}, .doubt = "the port's table has none", .reason = GidReason::Nothing};
  return {.entry = *best, .doubt = doubtOf(flawsOf(*best, wish), wish), .reason = GidReason::Best};
}

}  // namespace tutti::net::ib
