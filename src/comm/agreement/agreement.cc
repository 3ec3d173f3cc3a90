#include "comm/agreement/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/hash.h"
#include "base/log.h"
#include "base/ranks/control_channel.h"
#include "comm/agreement/peer_table.h"
#include "comm/tuning/model.h"
#include "comm/tuning/speeds.h"
#include "comm/tuning/tuning.h"
#include "topo/channels/costs.h"
#include "topo/channels/graph_agreement.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

namespace {

/// Messages are cut into what suits the network.
bool followsFromNetwork(AgreedSetting setting) {
  return setting == AgreedSetting::P2pNetChunkSize;
}

const char* nameOf(AgreedSetting setting) {
  switch (setting) {
    case AgreedSetting::Kernels:
      return "SOFTGPU_KERNELS";
    case AgreedSetting::LaunchShape:
      return "TUTTI_LAUNCH_SHAPE";
    case AgreedSetting::BuffSize:
      return "NCCL_BUFFSIZE";
    case AgreedSetting::LlBuffSize:
      return "NCCL_LL_BUFFSIZE";
    case AgreedSetting::Ll128BuffSize:
      return "NCCL_LL128_BUFFSIZE";
    case AgreedSetting::NThreads:
      return "NCCL_NTHREADS";
    case AgreedSetting::Ll128NThreads:
      return "NCCL_LL128_NTHREADS";
    case AgreedSetting::P2pLlThreshold:
      return "NCCL_P2P_LL_THRESHOLD";
    case AgreedSetting::PatEnable:
      return "NCCL_PAT_ENABLE";
    case AgreedSetting::P2pDisable:
      return "NCCL_P2P_DISABLE (or NCCL_P2P_LEVEL)";
    case AgreedSetting::P2pDirectDisable:
      return "NCCL_P2P_DIRECT_DISABLE";
    case AgreedSetting::ShmDisable:
      return "NCCL_SHM_DISABLE";
    case AgreedSetting::NetMessageMb:
      return "TUTTI_NET_MESSAGE_MB";
    case AgreedSetting::P2pNvlChunkSize:
      return "NCCL_P2P_NVL_CHUNKSIZE";
    case AgreedSetting::P2pPciChunkSize:
      return "NCCL_P2P_PCI_CHUNKSIZE";
    case AgreedSetting::P2pNetChunkSize:
      return "NCCL_P2P_NET_CHUNKSIZE";
    case AgreedSetting::P2pScheduleGroupSize:
      return "NCCL_P2P_SCHEDULE_GROUP_SIZE";
    case AgreedSetting::RuntimeConnect:
      return "NCCL_RUNTIME_CONNECT";
    case AgreedSetting::NetSharedBuffers:
      return "NCCL_NET_SHARED_BUFFERS";
    case AgreedSetting::CollNetNodeThreshold:
      return "NCCL_COLLNET_NODE_THRESHOLD";
    case AgreedSetting::CollNetIgnoreMismatch:
      return "NCCL_IGNORE_COLLNET_MISMATCH";
    case AgreedSetting::CheckCalls:
      return "TUTTI_CHECK_CALLS";
    case AgreedSetting::Count:
      break;
  }
  return "";
}

std::string textOf(AgreedSetting setting, std::uint32_t value) {
  if (setting == AgreedSetting::Kernels) return value == 0 ? "HOST" : "PTX";
  if (setting != AgreedSetting::LaunchShape) return std::to_string(value);
  return value == static_cast<std::uint32_t>(device::World::Gpu) ? "GPU" : "SOFTGPU";
}

Status mismatch(const char* setting, const topo::PeerInfo& a, std::string_view hasA, const topo::PeerInfo& b,
                std::string_view hasB) {
  return fail(ncclInvalidUsage, "Mismatched {} : {} has {}, {} has {}. Set it alike on all ranks", setting, rankName(a),
              hasA, rankName(b), hasB);
}

std::string quoted(const AgreedText& text) {
  return text.text[0] == 0 ? "nothing" : fmt::format("\"{}\"", text.text.data());
}

Status compareText(const char* name, const topo::PeerInfo& a, const AgreedText& hasA, const topo::PeerInfo& b,
                   const AgreedText& hasB) {
  if (hasA.hash == hasB.hash) return {};
  return mismatch(name, a, quoted(hasA), b, quoted(hasB));
}

/// Everybody is compared with rank 0: all ranks see the same table, hence the same first difference.
Status compare(std::span<const topo::PeerInfo> peers, std::span<const Proposal> proposals) {
  for (std::size_t r = 1; r < proposals.size(); ++r) {
    const bool sameNetwork = proposals[0].network.hash == proposals[r].network.hash;
    for (std::size_t s = 0; s < proposals[0].settings.size(); ++s) {
      const auto setting = static_cast<AgreedSetting>(s);
      const std::uint32_t first = proposals[0].settings[s];
      const std::uint32_t other = proposals[r].settings[s];
      if (first == other || (followsFromNetwork(setting) && !sameNetwork)) continue;
      return mismatch(nameOf(setting), peers[0], textOf(setting, first), peers[r], textOf(setting, other));
    }
    TRY(compareText("NCCL_ALGO", peers[0], proposals[0].algo, peers[r], proposals[r].algo));
    TRY(compareText("NCCL_PROTO", peers[0], proposals[0].proto, peers[r], proposals[r].proto));
    TRY(compareText("NCCL_THREAD_THRESHOLDS", peers[0], proposals[0].thresholds, peers[r], proposals[r].thresholds));
    TRY(compareText("network (NCCL_NET, NCCL_NET_PLUGIN)", peers[0], proposals[0].network, peers[r],
                    proposals[r].network));
  }
  return {};
}

/// What all can do and nobody wishes to exceed; of peers the largest number, for slots are laid out for so many.
Agreement commonGround(std::span<const topo::PeerInfo> peers, std::span<const Proposal> proposals) {
  Agreement agreement;
  agreement.nChannels = proposals.front().channels;
  agreement.messages = proposals.front().messages;
  agreement.lowestComputeCapability = agreement.highestComputeCapability = peers.front().computeCapability;
  for (std::size_t r = 0; r < proposals.size(); ++r) {
    const LinkAbilities& links = proposals[r].links;
    agreement.nChannels = std::min(agreement.nChannels, static_cast<int>(proposals[r].channels));
    agreement.messages.fewest = std::min(agreement.messages.fewest, proposals[r].messages.fewest);
    agreement.messages.most = std::min(agreement.messages.most, proposals[r].messages.most);
    agreement.messages.perNetPeer = std::min(agreement.messages.perNetPeer, proposals[r].messages.perNetPeer);
    agreement.messages.peers = std::max(agreement.messages.peers, proposals[r].messages.peers);
    agreement.threadsGiven |= proposals[r].threadsGiven != 0;
    agreement.links.tree &= links.tree;
    agreement.links.pat &= links.pat;
    agreement.links.everybody &= links.everybody;
    agreement.links.wholeLines &= links.wholeLines;
    agreement.links.stepsInPlace = std::min(agreement.links.stepsInPlace, links.stepsInPlace);
    const int capability = peers[r].computeCapability;
    agreement.lowestComputeCapability = std::min(agreement.lowestComputeCapability, capability);
    agreement.highestComputeCapability = std::max(agreement.highestComputeCapability, capability);
  }
  return agreement;
}

/// What came of this rank's wishes for messages, where others wished for something else.
void tellDecided(std::span<const topo::PeerInfo> peers, std::span<const Proposal> proposals, const MessageLimits& own) {
  const auto tell = [&](const char* setting, int MessageLimits::*wish, bool smallest = true) {
    const auto before = [&](const Proposal& a, const Proposal& b) {
      return smallest ? a.messages.*wish < b.messages.*wish : a.messages.*wish > b.messages.*wish;
    };
    const auto first = std::min_element(proposals.begin(), proposals.end(), before);
    if (first->messages.*wish == own.*wish) return;
    info(kInit | kEnv, "{} : {} has {}, this rank {}: the {} number counts", setting,
         rankName(peers[static_cast<std::size_t>(first - proposals.begin())]), first->messages.*wish, own.*wish,
         smallest ? "smallest" : "largest");
  };
  tell("NCCL_MIN_P2P_NCHANNELS", &MessageLimits::fewest);
  tell("NCCL_MAX_P2P_NCHANNELS", &MessageLimits::most);
  tell("NCCL_NCHANNELS_PER_NET_PEER (or nChannelsPerNetPeer, or what suits the NICs)", &MessageLimits::perNetPeer);
  tell("NCCL_P2P_MAX_PEERS (or maxP2pPeers, or all other ranks)", &MessageLimits::peers, false);
}

}  // namespace

Result<Agreement> agree(ControlChannel& control, std::span<const topo::PeerInfo> peers, const Proposal& own) {
  std::vector<Proposal> proposals(static_cast<std::size_t>(control.size()));
  proposals[static_cast<std::size_t>(control.rank())] = own;
  TRY(allGatherValues(control, std::span(proposals)));
  if (const Status difference = compare(peers, proposals); !difference.ok()) {
    // Nobody may leave, and be taken for dead, before all have seen the difference themselves.
    control.barrier().ignore();
    return difference;
  }
  std::vector<ComparedOptions> options;
  for (const Proposal& proposal : proposals) options.push_back(proposal.options);
  warnOfDifferences(peers, options, control.rank());
  tellDecided(peers, proposals, own.messages);
  return commonGround(peers, proposals);
}

namespace {

int mostOnOneDevice(std::span<const topo::PeerInfo> peers) {
  std::map<std::array<std::uint8_t, 16>, int> ranks;
  for (const topo::PeerInfo& peer : peers) ++ranks[peer.deviceUuid];
  int most = 1;
  for (const auto& [device, number] : ranks) most = std::max(most, number);
  return most;
}

}  // namespace

RankFacts rankFactsFrom(const Agreement& agreement, const topo::RankLayout& layout,
                        std::span<const topo::PeerInfo> peers, const topo::AgreedGraphs* graphs) {
  RankFacts facts;
  facts.nRanks = layout.nRanks();
  facts.nNodes = layout.nNodes();
  facts.computeCapability = agreement.lowestComputeCapability;
  const bool softGpu = peers.front().softGpu != 0;
  if (graphs != nullptr) {
    const bool nvlink = graphs->of(topo::GraphId::Ring).typeIntra <= topo::PathType::Nvb;
    facts.path = nvlink ? PathClass::NVLink : PathClass::Pci;
    facts.amdOrMixedCpus = graphs->amdOrMixedCpus;
  } else if (softGpu || agreement.links.wholeLines != 0) {
    facts.path = PathClass::NVLink;
  }
  facts.mostOnOneDevice = mostOnOneDevice(peers);
  const bool alike = ll128IsSafe(facts, agreement.highestComputeCapability, false);
  facts.ll128Safe = agreement.links.wholeLines != 0 && alike;
  return facts;
}

Speeds speedsFrom(const Agreement& agreement, const RankFacts& ranks, const topo::AgreedGraphs* graphs) {
  const auto nChannels = static_cast<unsigned>(agreement.nChannels);
  const bool meshed = agreement.links.everybody != 0;
  Speeds speeds = graphs == nullptr ? assumedSpeeds(ranks, nChannels, meshed)
                                    : knownSpeeds(ranks, topo::speedsOf(*graphs), nChannels, meshed);
  if (agreement.links.tree == 0) speeds.tree = {};
  if (agreement.links.pat == 0) speeds.pat = {};
  return speeds;
}

}  // namespace tutti::comm
