#include "comm/agreement/config_differences.h"

#include <algorithm>
#include <string>

#include "base/log.h"
#include "comm/agreement/peer_table.h"

namespace tutti::comm {

namespace {

struct ComparedOption {
  const char* name;
  int ncclConfig_t::*member;
  const char* consequence;
};

constexpr const char* kOrder =
    "ranks may run graphs and other work in different orders, and wait for each other for ever, unless the application "
    "orders them itself";
constexpr const char* kShare = "of the ranks of a child all must share connections with their parent, or none does";

/// Not here: what is each rank's own affair (blocking, commName), what the smallest or largest wish decides (channels,
/// peers), what must be equal by itself (the network), and what nothing heeds (ConfigField::without).
constexpr std::array<ComparedOption, kComparedOptions> kOptions{{
    {"trafficClass", &ncclConfig_t::trafficClass, "each rank asks the network for its own"},
    {"graphUsageMode", &ncclConfig_t::graphUsageMode, kOrder},
    {"graphStreamOrdering", &ncclConfig_t::graphStreamOrdering, kOrder},
    {"splitShare", &ncclConfig_t::splitShare, kShare},
    {"shrinkShare", &ncclConfig_t::shrinkShare, kShare},
}};

std::string textOf(int value) {
  return value == NCCL_CONFIG_UNDEF_INT ? "none" : std::to_string(value);
}

/// Whom this rank names beside rank 0: itself, or, as rank 0, the first that differs; 0: nobody has to be named.
std::size_t differing(std::span<const ComparedOptions> options, std::size_t option, int rank) {
  const auto same = [&](const ComparedOptions& other) { return other[option] == options.front()[option]; };
  if (rank != 0) return same(options[static_cast<std::size_t>(rank)]) ? 0 : static_cast<std::size_t>(rank);
  const auto first = std::find_if_not(options.begin(), options.end(), same);
  return first == options.end() ? 0 : static_cast<std::size_t>(first - options.begin());
}

}  // namespace

ComparedOptions comparedOptions(const ncclConfig_t& config) {
  ComparedOptions values{};
  for (std::size_t i = 0; i < kOptions.size(); ++i) values[i] = config.*kOptions[i].member;
  return values;
}

void warnOfDifferences(std::span<const topo::PeerInfo> peers, std::span<const ComparedOptions> options, int rank) {
  for (std::size_t i = 0; i < kOptions.size(); ++i) {
    const std::size_t other = differing(options, i, rank);
    if (other == 0) continue;
    warn("Comm config {} differs : {} has {}, {} has {}: {}", kOptions[i].name, rankName(peers.front()),
         textOf(options.front()[i]), rankName(peers[other]), textOf(options[other][i]), kOptions[i].consequence);
  }
}

}  // namespace tutti::comm
