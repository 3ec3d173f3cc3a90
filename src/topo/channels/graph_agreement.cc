#include "topo/channels/graph_agreement.h"

#include <algorithm>
#include <cstdint>

#include "base/log.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"

namespace tutti::topo {

namespace {

enum class CpuMaker : std::uint8_t { Intel, Amd, Zhaoxin, Other, Arm, Power };

CpuMaker makerOf(CpuKind kind) {
  switch (kind) {
    case CpuKind::IntelBroadwell:
    case CpuKind::IntelSkylake:
    case CpuKind::IntelSapphireRapids:
    case CpuKind::IntelEmeraldRapids:
      return CpuMaker::Intel;
    case CpuKind::Amd:
      return CpuMaker::Amd;
    case CpuKind::Zhaoxin:
    case CpuKind::ZhaoxinYongfeng:
      return CpuMaker::Zhaoxin;
    case CpuKind::OtherX86:
      return CpuMaker::Other;
    case CpuKind::Arm:
      return CpuMaker::Arm;
    case CpuKind::Power:
      return CpuMaker::Power;
  }
  return CpuMaker::Other;
}

void reduce(GraphSummary& agreed, const GraphSummary& other) {
  agreed.channels = std::min(agreed.channels, other.channels);
  agreed.pattern = std::max(agreed.pattern, other.pattern);
  agreed.crossNic = std::max(agreed.crossNic, other.crossNic);
  agreed.sameChannels = std::min(agreed.sameChannels, other.sameChannels);
  agreed.typeIntra = std::max(agreed.typeIntra, other.typeIntra);
  agreed.typeInter = std::max(agreed.typeInter, other.typeInter);
  agreed.bwIntra = std::min(agreed.bwIntra, other.bwIntra);
  agreed.bwInter = std::min(agreed.bwInter, other.bwInter);
  agreed.latencyInter = std::max(agreed.latencyInter, other.latencyInter);
}

Status different(const PeerInfo& a, const PeerInfo& b) {
  return fail(ncclInvalidUsage,
              "Mismatched graphs : rank {} and rank {} of host {} (pids {} and {}) found different "
              "rings or trees for the machine they share. Set NCCL_TOPO_FILE, NCCL_GRAPH_FILE and the settings about "
              "P2P, NICs and paths alike on all ranks of a host",
              a.rank, b.rank, a.hostName.data(), a.pid, b.pid);
}

}  // namespace

Result<AgreedGraphs> agreeOnGraphs(const RankLayout& layout, std::span<const PeerInfo> peers,
                                   std::span<const GraphReport> all) {
  AgreedGraphs agreed;
  agreed.graphs = all.front().graphs;
  const CpuMaker maker = makerOf(all.front().cpu);
  agreed.amdOrMixedCpus = maker == CpuMaker::Amd;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const auto first = static_cast<std::size_t>(layout.ranksOnNode(layout.nodeOf(static_cast<int>(r))).front());
    if (all[first].hash != all[r].hash) return different(peers[first], peers[r]);
    for (std::size_t g = 0; g < agreed.graphs.size(); ++g) reduce(agreed.graphs[g], all[r].graphs[g]);
    agreed.amdOrMixedCpus |= makerOf(all[r].cpu) != maker;
  }
  return agreed;
}

}  // namespace tutti::topo
