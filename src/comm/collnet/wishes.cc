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

CollNetObstacle collNetObstacle(std::span<const topo::PeerInfo> peers, int nNodes, const CommSettings& settings) {
  const auto least = std::min_element(peers.begin(), peers.end(), hasFewer);
  const auto most = std::max_element(peers.begin(), peers.end(), hasFewer);
  if (nNodes < settings.collNet.nodeThreshold) {
    return {.why = fmt::format("Communicator has {} nodes which is less than CollNet node threshold {}, disabling "
                               "CollNet (NCCL_COLLNET_NODE_THRESHOLD)",
                               nNodes, settings.collNet.nodeThreshold)};
  }
  if (least->collNetDevices < 0) {
    return {.why = fmt::format("CollNet is not enabled on rank {} on host {}, and is on rank {} on host {} "
                               "(NCCL_COLLNET_ENABLE, or collnetEnable of the configuration)",
                               least->rank, least->hostName.data(), most->rank, most->hostName.data()),
            .mismatch = true};
  }
  if (least->collNetDevices != most->collNetDevices && !settings.collNet.ignoresMismatch) {
    return {.why = fmt::format("Detected mixed local CollNet device counts across ranks (min {}, max {}): rank {} on "
                               "host {} has {} and rank {} on host {} has {}",
                               least->collNetDevices, most->collNetDevices, least->rank, least->hostName.data(),
                               least->collNetDevices, most->rank, most->hostName.data(), most->collNetDevices),
            .lacking = least->rank,
            .mismatch = true};
  }
  if (least->collNetDevices > 0) return {};
  return {.why = fmt::format("rank {} on host {} has no collNet plugin with a device (NCCL_NET_PLUGIN)", least->rank,
                             least->hostName.data()),
          .lacking = least->rank};
}

RankReason explained(const CollNetObstacle& obstacle, std::span<const topo::PeerInfo> peers,
                     std::span<const RankReason> reasons) {
  RankReason all{obstacle.why, obstacle.mismatch};
  // What does not work on any rank says more than what is not there.
  auto told = std::find_if(reasons.begin(), reasons.end(), [](const RankReason& reason) { return reason.failed; });
  const auto said = [](const RankReason& reason) { return !reason.why.empty(); };
  if (told == reasons.end()) told = std::find_if(reasons.begin(), reasons.end(), said);
  if (told != reasons.end()) {
    all.failed = all.failed || told->failed;
    all.why += ". " + reasonText(peers[static_cast<std::size_t>(told - reasons.begin())], told->why);
  } else if (obstacle.mismatch && obstacle.lacking >= 0) {
    all.why += ". Load the same plugin with the same devices on all hosts, or set NCCL_IGNORE_COLLNET_MISMATCH=1";
  }
  return all;
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
