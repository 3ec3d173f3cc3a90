#include "comm/collnet/wishes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "comm/settings/comm_settings.h"
#include "topo/machine/rank_layout.h"
#include "transport/common/transport.h"

namespace tutti::comm {

namespace {

bool hasFewer(const topo::PeerInfo& a, const topo::PeerInfo& b) {
  return a.collNetDevices < b.collNetDevices;
}

}  // namespace

bool anybodyWantsCollNet(std::span<const topo::PeerInfo> peers) {
  return std::max_element(peers.begin(), peers.end(), hasFewer)->collNetDevices >= 0;
}

std::string whyNoCollNet(std::span<const topo::PeerInfo> peers, int nNodes, const CommSettings& settings) {
  const topo::PeerInfo& least = *std::min_element(peers.begin(), peers.end(), hasFewer);
  if (least.collNetDevices < 0) {
    return fmt::format("CollNet is not enabled on rank {} (NCCL_COLLNET_ENABLE, or collnetEnable of the configuration)",
                       least.rank);
  }
  if (least.collNetDevices == 0) {
    return fmt::format("rank {} on host {} has no collNet plugin with a device (NCCL_NET_PLUGIN)", least.rank,
                       least.hostName.data());
  }
  if (nNodes >= settings.collNet.nodeThreshold) return {};
  return fmt::format(
      "Communicator has {} nodes which is less than CollNet node threshold {}, disabling CollNet "
      "(NCCL_COLLNET_NODE_THRESHOLD)",
      nNodes, settings.collNet.nodeThreshold);
}

Status checkCollNetDevices(std::span<const topo::PeerInfo> peers, const CommSettings& settings) {
  const auto [least, most] = std::minmax_element(peers.begin(), peers.end(), hasFewer);
  if (least->collNetDevices < 0 || least->collNetDevices == most->collNetDevices || settings.collNet.ignoresMismatch)
    return {};
  return fail(ncclSystemError,
              "Detected mixed local CollNet device counts across ranks (min {}, max {}): rank {} on host {} has {} and "
              "rank {} on host {} has {}. Load the same plugin with the same devices on all hosts, or set "
              "NCCL_IGNORE_COLLNET_MISMATCH=1",
              least->collNetDevices, most->collNetDevices, least->rank, least->hostName.data(), least->collNetDevices,
              most->rank, most->hostName.data(), most->collNetDevices);
}

Result<bool> reachesLocals(std::span<const std::unique_ptr<transport::Transport>> transports,
                           std::span<const topo::PeerInfo> peers, const topo::RankLayout& layout) {
  const auto peerOf = [&](int rank) -> const topo::PeerInfo& { return peers[static_cast<std::size_t>(rank)]; };
  for (const int rank : layout.ranksOnNode(layout.nodeOf(layout.rank()))) {
    bool reached = rank == layout.rank();
    for (const auto& transport : transports) {
      if (reached || transport->proxied()) continue;
      ASSIGN(reached, transport->reachable(peerOf(layout.rank()), peerOf(rank)));
    }
    if (!reached) return false;
  }
  return true;
}

}  // namespace tutti::comm
