// GIDs: the addresses of ports, and which of a port's table a connection uses. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti::net::ib {

using Gid = std::array<std::uint8_t, 16>;

/// An entry of a port's table of GIDs.
struct GidEntry {
  int index = 0;
  Gid gid{};
  int roceVersion = 0;  ///< 1 or 2; 0: unknown, or not of Ethernet
};

enum class GidFamily : std::uint8_t { Ipv4, Ipv6 };

/// Mapped IPv4 addresses (::ffff:a.b.c.d) are Ipv4, all others Ipv6.
GidFamily familyOf(const Gid& gid);
bool isZero(const Gid& gid);
/// fe80::/64, which means something on one link only.
bool isLinkLocal(const Gid& gid);
/// "::ffff:10.0.0.1"
std::string gidText(const Gid& gid);

/// A range of addresses, "10.1.0.0/16" or "fd00::/8".
struct GidRange {
  Gid first{};
  int bits = -1;  ///< of the 128 that must be equal; -1: all addresses are in it

  /// A text without a length, or that is no address, is all addresses.
  static GidRange parse(std::string_view text);
  bool contains(const Gid& gid) const;
};

/// What a GID of Ethernet should be like.
struct GidWish {
  int index = -1;  ///< >= 0: this one, whatever it is
  GidFamily family = GidFamily::Ipv4;
  GidRange range;
  int roceVersion = 2;
};

/// What an entry has against it.
struct GidFlaws {
  bool unset = false;         ///< all zero
  bool linkLocal = false;     ///< nobody beyond the link reaches it
  bool outside = false;       ///< of the range that is wished
  bool otherVersion = false;  ///< of RoCE
  bool otherFamily = false;
  friend bool operator==(const GidFlaws&, const GidFlaws&) = default;
};
GidFlaws flawsOf(const GidEntry& entry, const GidWish& wish);

/// Why an entry was taken.
enum class GidReason : std::uint8_t {
  Named,    ///< by its index
  Best,     ///< no other has fewer flaws that weigh more, and it is the first of its kind
  Nothing,  ///< the table has none: entry 0 stands for it
};

/// What was taken of a table.
struct GidChoice {
  GidEntry entry;
  std::string doubt;  ///< "": it is as wished; else what is wrong with it
  GidReason reason = GidReason::Nothing;
};

/// Of a port of Ethernet, the first entry as wished; else one of the right version within the range, of the other
/// family; else any valid one of it; else any valid one. Link-local ones come behind all others, and count as doubtful;
/// so does an entry 0 of an empty table. `table`: the entries that are set, by index.
GidChoice chooseGid(std::span<const GidEntry> table, const GidWish& wish);

}  // namespace tutti::net::ib
