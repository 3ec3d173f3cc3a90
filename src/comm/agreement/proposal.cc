#include "comm/agreement/proposal.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/hash.h"
#include "comm/settings/comm_settings.h"
#include "device/policy.h"
#include "topo/channels/trees.h"
#include "topo/machine/peer_info.h"
#include "transport/common/transport.h"

namespace tutti::comm {

namespace {

std::string textOf(const ThreadThresholds& thresholds) {
  std::string text;
  for (const auto& row : {thresholds.tree, thresholds.ring}) {
    for (const std::int64_t bytes : row) text += fmt::format("{} ", bytes);
  }
  return text;
}

struct BestLink {
  transport::LinkQuality quality = transport::LinkQuality::None;
  bool proxied = false;
};

Result<BestLink> bestLink(std::span<const std::unique_ptr<transport::Transport>> transports, const topo::PeerInfo& self,
                          const topo::PeerInfo& peer) {
  for (const std::unique_ptr<transport::Transport>& transport : transports) {
    ASSIGN(const transport::LinkQuality quality, transport->judge(self, peer));
    if (quality != transport::LinkQuality::None) return BestLink{quality, transport->proxied()};
  }
  return BestLink{};
}

}  // namespace

AgreedText agreedText(std::string_view text) {
  AgreedText agreed;
  std::copy_n(text.begin(), std::min(text.size(), agreed.text.size() - 1), agreed.text.begin());
  agreed.hash = hashBytes(std::as_bytes(std::span(text)));
  return agreed;
}

Proposal proposalFor(const device::Policy& policy, const std::array<device::SlotBytes, device::kConnKinds>& slotBytes,
                     const CommSettings& settings) {
  Proposal proposal;
  const auto set = [&](AgreedSetting setting, std::uint32_t value) {
    proposal.settings[static_cast<std::size_t>(setting)] = value;
  };
  const auto buffer = [&](device::Protocol protocol) {
    const auto graph = static_cast<std::size_t>(device::ConnKind::Graph);
    return slotBytes[graph][static_cast<std::size_t>(protocol)] * static_cast<std::uint32_t>(device::kSteps);
  };
  set(AgreedSetting::Kernels, settings.kernels.fatbins ? 1 : 0);
  set(AgreedSetting::LaunchShape, static_cast<std::uint32_t>(policy.world));
  set(AgreedSetting::BuffSize, buffer(device::Protocol::Simple));
  set(AgreedSetting::LlBuffSize, buffer(device::Protocol::LL));
  set(AgreedSetting::Ll128BuffSize, buffer(device::Protocol::LL128));
  set(AgreedSetting::NThreads, policy.collThreads[static_cast<std::size_t>(device::Protocol::Simple)]);
  set(AgreedSetting::Ll128NThreads, policy.collThreads[static_cast<std::size_t>(device::Protocol::LL128)]);
  set(AgreedSetting::P2pLlThreshold, static_cast<std::uint32_t>(policy.llMessageBytes));
  set(AgreedSetting::PatEnable, static_cast<std::uint32_t>(settings.tuning.pat));
  set(AgreedSetting::P2pDisable, settings.p2p.disabled ? 1 : 0);
  set(AgreedSetting::P2pDirectDisable, settings.p2p.directDisabled ? 1 : 0);
  set(AgreedSetting::ShmDisable, settings.shm.disabled ? 1 : 0);
  set(AgreedSetting::NetMessageMb, settings.netMessageMb);
  set(AgreedSetting::NetSharedBuffers, settings.netSharedSlots != 0 ? 1 : 0);
  set(AgreedSetting::P2pScheduleGroupSize, static_cast<std::uint32_t>(settings.messages.mostPerGroup));
  set(AgreedSetting::RuntimeConnect, settings.connectAtInit ? 0 : 1);
  set(AgreedSetting::CollNetNodeThreshold, static_cast<std::uint32_t>(settings.collNet.nodeThreshold));
  set(AgreedSetting::CheckCalls, settings.checkCalls ? 1 : 0);
  set(AgreedSetting::CollNetIgnoreMismatch, settings.collNet.ignoresMismatch ? 1 : 0);
  proposal.threadsGiven = settings.tuning.nThreads > 0 ? 1 : 0;
  const ThreadThresholds& thresholds = settings.tuning.thresholds;
  if (thresholds != ThreadThresholds{}) proposal.thresholds = agreedText(textOf(thresholds));
  proposal.algo = agreedText(settings.algo);
  proposal.proto = agreedText(settings.proto);
  return proposal;
}

void propose(Proposal& proposal, const MessageLimits& wishes, const MessageSlots& slots) {
  proposal.messages = wishes;
  const auto set = [&](AgreedSetting setting, std::uint32_t value) {
    proposal.settings[static_cast<std::size_t>(setting)] = value;
  };
  set(AgreedSetting::P2pNvlChunkSize, slots.nvl);
  set(AgreedSetting::P2pPciChunkSize, slots.pci);
  set(AgreedSetting::P2pNetChunkSize, slots.net);
}

Result<LinkAbilities> abilitiesOf(std::span<const std::unique_ptr<transport::Transport>> transports,
                                  std::span<const topo::PeerInfo> peers, std::span<const int> inTrees, int rank) {
  const topo::PeerInfo& self = peers[static_cast<std::size_t>(rank)];
  const std::vector<int> inPat = topo::patNeighbours(rank, static_cast<int>(peers.size()));
  LinkAbilities abilities;
  for (const topo::PeerInfo& peer : peers) {
    if (peer.rank == rank) continue;
    ASSIGN(const BestLink link, bestLink(transports, self, peer));
    const bool sameHost = peer.hostHash == self.hostHash;
    if (link.quality != transport::LinkQuality::WholeLines && sameHost) abilities.wholeLines = 0;
    if (link.quality == transport::LinkQuality::None || link.proxied || !sameHost) abilities.everybody = 0;
    if (link.quality != transport::LinkQuality::None) continue;
    if (std::binary_search(inTrees.begin(), inTrees.end(), peer.rank)) abilities.tree = 0;
    if (std::binary_search(inPat.begin(), inPat.end(), peer.rank)) abilities.pat = 0;
  }
  return abilities;
}

}  // namespace tutti::comm
