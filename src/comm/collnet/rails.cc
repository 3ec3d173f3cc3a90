#include "comm/collnet/rails.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "device/collnet_view.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

namespace {

/// The reports of one communicator, node by node.
class Nodes {
 public:
  Nodes(const topo::RankLayout& layout, std::span<const topo::PeerInfo> peers, std::span<const RailReport> reports)
      : layout_(layout), peers_(peers), reports_(reports) {}

  int count() const { return layout_.nNodes(); }
  std::span<const int> ranks(int node) const { return layout_.ranksOnNode(node); }
  const RailReport& of(int rank) const { return reports_[static_cast<std::size_t>(rank)]; }
  /// What its first rank says of a node.
  const RailReport& first(int node) const { return of(ranks(node).front()); }
  std::string hostOf(int node) const { return peers_[static_cast<std::size_t>(ranks(node).front())].hostName.data(); }
  int headOf(int node, int rail) const {
    const std::span<const int> all = ranks(node);
    const auto head = std::find_if(all.begin(), all.end(), [&](int rank) { return of(rank).rail == rail; });
    return head == all.end() ? -1 : *head;
  }

 private:
  const topo::RankLayout& layout_;
  std::span<const topo::PeerInfo> peers_;
  std::span<const RailReport> reports_;
};

/// Why neither algorithm is possible; empty: nothing stands against both.
std::string whyNeither(const Nodes& nodes) {
  for (int n = 0; n < nodes.count(); ++n) {
    const std::size_t locals = nodes.ranks(n).size();
    if (locals > static_cast<std::size_t>(device::kMaxCollNetLocals)) {
      return fmt::format("host {} has {} ranks, and at most {} of a host are served", nodes.hostOf(n), locals,
                         device::kMaxCollNetLocals);
    }
    if (nodes.first(n).rails == 0) {
      return fmt::format("no GPU of host {} was found to reach a NIC with collectives", nodes.hostOf(n));
    }
    for (const int rank : nodes.ranks(n)) {
      if (nodes.of(rank).reachesLocals != 0) continue;
      return fmt::format("rank {} on host {} does not reach the memory of all ranks of its host", rank,
                         nodes.hostOf(n));
    }
  }
  return {};
}

/// Rails that all ranks know of, and that have a head on all nodes. Ranks of a node may see different NICs.
int commonRails(const Nodes& nodes) {
  int common = std::numeric_limits<int>::max();
  for (int n = 0; n < nodes.count(); ++n) {
    for (const int rank : nodes.ranks(n)) common = std::min<int>(common, nodes.of(rank).rails);
  }
  for (int rail = 0; rail < common; ++rail) {
    for (int n = 0; n < nodes.count(); ++n) {
      if (nodes.headOf(n, rail) < 0) return rail;
    }
  }
  return common;
}

std::string whyNoDirect(const Nodes& nodes) {
  for (int n = 0; n < nodes.count(); ++n) {
    if (nodes.first(n).switched != 0) continue;
    return fmt::format("the GPUs of host {} do not meet in NVSwitches", nodes.hostOf(n));
  }
  return {};
}

/// Channels whose heads are on one rail on all nodes, up to the first that is not.
int commonChains(const Nodes& nodes, int rails) {
  for (int c = 0;; ++c) {
    const auto channel = static_cast<std::size_t>(c);
    for (int n = 0; n < nodes.count(); ++n) {
      for (const int rank : nodes.ranks(n)) {
        const RailReport& report = nodes.of(rank);
        if (c >= report.chains || channel >= report.chainRails.size()) return c;
        const int rail = report.chainRails[channel];
        if (rail < 0 || rail >= rails || rail != nodes.first(0).chainRails[channel]) return c;
      }
    }
  }
}

}  // namespace

RailReport railReport(const NodeHeads& node, int localRank, bool reachesLocals) {
  RailReport report;
  const auto railOf = [&](int local) {
    const auto head = std::find_if(node.heads.begin(), node.heads.end(),
                                   [local](const NodeHead& one) { return one.localRank == local; });
    return head == node.heads.end() ? -1 : static_cast<int>(head - node.heads.begin());
  };
  report.rail = static_cast<std::int16_t>(railOf(localRank));
  report.rails = static_cast<std::uint8_t>(node.heads.size());
  report.chains = static_cast<std::uint8_t>(std::min(node.chains.size(), report.chainRails.size()));
  for (std::size_t c = 0; c < report.chains; ++c) {
    report.chainRails[c] = static_cast<std::int8_t>(railOf(node.chains[c].front()));
  }
  report.reachesLocals = reachesLocals ? 1 : 0;
  report.switched = node.switched ? 1 : 0;
  return report;
}

int Rails::railOf(int rank) const {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin()) % heads;
}

Rails railsFrom(const topo::RankLayout& layout, std::span<const topo::PeerInfo> peers,
                std::span<const RailReport> reports) {
  const Nodes nodes(layout, peers, reports);
  Rails rails;
  for (int n = 0; n < nodes.count(); ++n) {
    rails.mostLocals = std::max(rails.mostLocals, static_cast<int>(nodes.ranks(n).size()));
  }
  if (std::string why = whyNeither(nodes); !why.empty()) {
    rails.whyNoDirect = rails.whyNoChain = std::move(why);
    return rails;
  }
  rails.heads = commonRails(nodes);
  if (rails.heads == 0) {
    rails.whyNoDirect = rails.whyNoChain = "the ranks of a host do not agree on who talks to the network";
    return rails;
  }
  for (int n = 0; n < nodes.count(); ++n) {
    for (int rail = 0; rail < rails.heads; ++rail) rails.ranks.push_back(nodes.headOf(n, rail));
  }
  rails.whyNoDirect = whyNoDirect(nodes);
  rails.chains = commonChains(nodes, rails.heads);
  if (rails.chains == 0) rails.whyNoChain = "the hosts have no chain with a head on the same rail";
  return rails;
}

}  // namespace tutti::comm
