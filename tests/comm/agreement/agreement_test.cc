#include "comm/agreement/agreement.h"

#include <gtest/gtest.h>

#include "base/settings/params.h"
#include "comm/settings/comm_settings.h"
#include "comm/tuning/tuning.h"
#include "support/fake_control_channel.h"
#include "support/log_capture.h"
#include "support/thread_ranks.h"
#include "topo/channels/graph_agreement.h"
#include "topo/channels/trees.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"
#include "transport/common/transport.h"

namespace tutti::comm {
namespace {

std::vector<topo::PeerInfo> plainPeers(int n) {
  std::vector<topo::PeerInfo> peers(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) {
    peers[static_cast<std::size_t>(r)].rank = r;
    peers[static_cast<std::size_t>(r)].computeCapability = 90;
    peers[static_cast<std::size_t>(r)].hostName = {'n', 'o', 'd', 'e'};
    peers[static_cast<std::size_t>(r)].pid = 100 + r;
  }
  return peers;
}

Proposal proposalOf(const Params& params) {
  const CommSettings settings = commSettingsFrom(params);
  return proposalFor(device::kHostPolicy, {device::SlotBytes{16384, 32768, 131072}, device::SlotBytes{}}, settings);
}

/// What n ranks say to their proposals.
std::vector<Result<Agreement>> agreeAll(const std::vector<topo::PeerInfo>& peers,
                                        const std::vector<Proposal>& proposals) {
  const int n = static_cast<int>(peers.size());
  test::FakeWorld world(n);
  std::vector<Result<Agreement>> results(peers.size(), Status(ncclInternalError));
  test::runRanks(n, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    results[r] = agree(world.channel(rank), peers, proposals[r]);
  });
  return results;
}

TEST(Agreement, SmallestWishAndCommonAbilitiesWin) {
  std::vector<topo::PeerInfo> peers = plainPeers(3);
  peers[1].computeCapability = 80;
  std::vector<Proposal> proposals(3, proposalOf(Params{}));
  for (std::size_t r = 0; r < 3; ++r) proposals[r].channels = 4 + static_cast<int>(r);
  proposals[2].links.wholeLines = 0;
  proposals[1].threadsGiven = 1;
  proposals[1].links.stepsInPlace = 1;
  for (const auto& result : agreeAll(peers, proposals)) {
    ASSERT_TRUE(result.ok());
    const Agreement& agreement = result.value();
    EXPECT_EQ(agreement.nChannels, 4);
    EXPECT_TRUE(agreement.threadsGiven) << "by one is enough";
    EXPECT_EQ(agreement.links, (LinkAbilities{1, 1, 1, 0, 1}));
    EXPECT_EQ(agreement.lowestComputeCapability, 80);
    EXPECT_EQ(agreement.highestComputeCapability, 90);
  }
}

TEST(Agreement, TheSmallestNumberOfChannelsForMessagesCounts) {
  const std::vector<topo::PeerInfo> peers = plainPeers(3);
  std::vector<Proposal> proposals(3, proposalOf(Params{}));
  propose(proposals[0], {.fewest = 4, .most = 16, .perNetPeer = 8, .peers = 1}, {});
  propose(proposals[1], {.fewest = 2, .most = 32, .perNetPeer = 2, .peers = 2}, {});
  propose(proposals[2], {.fewest = 3, .most = 64, .perNetPeer = 4, .peers = 1}, {});
  for (const auto& result : agreeAll(peers, proposals)) {
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result.value().messages, (MessageLimits{.fewest = 2, .most = 16, .perNetPeer = 2, .peers = 2}))
        << "of peers the largest number";
  }
}

TEST(Agreement, DifferentGroupsOfMessagesAreRefusedByName) {
  test::allowLog(
      "Mismatched NCCL_P2P_SCHEDULE_GROUP_SIZE : rank 0 (host node, pid 100) has 8, rank 1 (host node, pid "
      "101) has 4");
  Params four;
  four.tuning.p2pScheduleGroup = 4;
  const std::vector<Proposal> proposals{proposalOf(Params{}), proposalOf(four)};
  for (const auto& result : agreeAll(plainPeers(2), proposals)) EXPECT_EQ(result.status().code(), ncclInvalidUsage);
}

TEST(Agreement, DifferentChunksOfMessagesAreRefusedByName) {
  test::allowLog(
      "Mismatched NCCL_P2P_NET_CHUNKSIZE : rank 0 (host node, pid 100) has 131072, rank 1 (host node, pid 101) has "
      "65536");
  std::vector<Proposal> proposals(2, proposalOf(Params{}));
  propose(proposals[0], {}, {1, 1, 131072});
  propose(proposals[1], {}, {1, 1, 65536});
  for (const auto& result : agreeAll(plainPeers(2), proposals)) EXPECT_EQ(result.status().code(), ncclInvalidUsage);
  EXPECT_NE(test::capturedText().find("NCCL_P2P_NET_CHUNKSIZE"), std::string::npos);
}

TEST(Agreement, DifferentNetworksAreNotBlamedOnTheChunksThatFollowFromThem) {
  constexpr const char* kBlame =
      "Mismatched network (NCCL_NET, NCCL_NET_PLUGIN) : rank 0 (host node, pid 100) has \"Socket\", rank 1 (host node, "
      "pid 101) has \"IB\"";
  test::allowLog(kBlame);
  std::vector<Proposal> proposals(2, proposalOf(Params{}));
  propose(proposals[0], {}, {1, 1, 524288});
  propose(proposals[1], {}, {1, 1, 131072});
  proposals[0].network = agreedText("Socket");
  proposals[1].network = agreedText("IB");
  for (const auto& result : agreeAll(plainPeers(2), proposals)) EXPECT_EQ(result.status().code(), ncclInvalidUsage);
  EXPECT_NE(test::capturedText().find(kBlame), std::string::npos) << test::capturedText();
}

TEST(Agreement, DifferentThresholdsAreRefusedByName) {
  test::allowLog("Mismatched NCCL_THREAD_THRESHOLDS");
  Params one;
  one.tuning.threadThresholds = "1 2 3 4 5 6";
  Params same;
  same.tuning.threadThresholds = "1,2,3,4,5,6";
  const auto equal = agreeAll(plainPeers(2), {proposalOf(one), proposalOf(same)});
  EXPECT_TRUE(equal[0].ok() && equal[1].ok()) << "written otherwise";
  for (const auto& result : agreeAll(plainPeers(2), {proposalOf(one), proposalOf(Params{})})) {
    EXPECT_EQ(result.status().code(), ncclInvalidUsage);
  }
}

TEST(Agreement, KernelsOfDifferentFormsAreBlamedAndNotWhatFollowsFromThem) {
  constexpr const char* kBlame =
      "Mismatched SOFTGPU_KERNELS : rank 0 (host node, pid 100) has HOST, rank 1 (host node, pid 101) has PTX";
  test::allowLog(kBlame);
  Params translated;
  translated.misc.softGpuKernels = "PTX";
  for (const auto& result : agreeAll(plainPeers(2), {proposalOf(Params{}), proposalOf(translated)})) {
    EXPECT_EQ(result.status().code(), ncclInvalidUsage);
  }
  EXPECT_NE(test::capturedText().find(kBlame), std::string::npos) << test::capturedText();
}

TEST(Agreement, DifferentNodeThresholdsOfCollNetAreRefusedWithBothValues) {
  constexpr const char* kBlame =
      "Mismatched NCCL_COLLNET_NODE_THRESHOLD : rank 0 (host node, pid 100) has 2, rank 1 (host node, pid 101) has 3";
  test::allowLog(kBlame);
  Params other;
  other.misc.collnetNodeThreshold = 3;
  for (const auto& result : agreeAll(plainPeers(2), {proposalOf(Params{}), proposalOf(other)})) {
    EXPECT_EQ(result.status().code(), ncclInvalidUsage);
  }
  EXPECT_NE(test::capturedText().find(kBlame), std::string::npos) << test::capturedText();
}

TEST(Agreement, DifferentBufferSizesAreRefusedByName) {
  test::allowLog(
      "Mismatched NCCL_LL_BUFFSIZE : rank 0 (host node, pid 100) has 131072, rank 1 (host node, pid 101) has 8192");
  std::vector<Proposal> proposals(2, proposalOf(Params{}));
  proposals[1].settings[static_cast<std::size_t>(AgreedSetting::LlBuffSize)] = 8192;
  for (const auto& result : agreeAll(plainPeers(2), proposals)) EXPECT_EQ(result.status().code(), ncclInvalidUsage);
  EXPECT_NE(test::capturedText().find("Mismatched NCCL_LL_BUFFSIZE"), std::string::npos);
}

TEST(Agreement, DifferentShapesAreNotBlamedOnWhatFollowsFromThem) {
  constexpr const char* kBlame =
      "Mismatched TUTTI_LAUNCH_SHAPE : rank 0 (host node, pid 100) has SOFTGPU, rank 1 (host node, pid 101) has GPU";
  test::allowLog(kBlame);
  const Proposal like = proposalFor(
      device::kGpuPolicy, {device::kGpuPolicy.slotBytes, device::kGpuPolicy.meshSlotBytes}, commSettingsFrom(Params{}));
  for (const auto& result : agreeAll(plainPeers(2), {proposalOf(Params{}), like})) {
    EXPECT_EQ(result.status().code(), ncclInvalidUsage);
  }
  EXPECT_NE(test::capturedText().find(kBlame), std::string::npos) << test::capturedText();
}

TEST(Agreement, DifferentAlgorithmSettingsAreRefusedWithBothValues) {
  test::allowLog(
      "Mismatched NCCL_ALGO : rank 0 (host node, pid 100) has \"Ring\", rank 2 (host node, pid 102) has nothing");
  Params ring;
  ring.tuning.algo = "Ring";
  const std::vector<Proposal> proposals{proposalOf(ring), proposalOf(ring), proposalOf(Params{})};
  for (const auto& result : agreeAll(plainPeers(3), proposals)) EXPECT_EQ(result.status().code(), ncclInvalidUsage);
  EXPECT_NE(test::capturedText().find("Mismatched NCCL_ALGO"), std::string::npos);
}

TEST(Agreement, LongTextsDifferAlsoBehindWhatIsShown) {
  const std::string common(200, 'x');
  EXPECT_EQ(agreedText(common + "a").text, agreedText(common + "b").text);
  EXPECT_NE(agreedText(common + "a").hash, agreedText(common + "b").hash);
}

TEST(Agreement, DisabledPeerAccessMustBeDisabledEverywhere) {
  test::allowLog("Mismatched NCCL_P2P_DISABLE");
  Params off;
  off.transports.p2pDisable = true;
  for (const auto& result : agreeAll(plainPeers(2), {proposalOf(Params{}), proposalOf(off)})) {
    EXPECT_EQ(result.status().code(), ncclInvalidUsage);
  }
}

TEST(Agreement, ReadingInPlaceMustBeDisabledEverywhere) {
  test::allowLog("Mismatched NCCL_P2P_DIRECT_DISABLE");
  Params off;
  off.transports.p2pDirectDisable = true;
  for (const auto& result : agreeAll(plainPeers(2), {proposalOf(Params{}), proposalOf(off)})) {
    EXPECT_EQ(result.status().code(), ncclInvalidUsage);
  }
}

TEST(Agreement, DisabledSharedMemoryMustBeDisabledEverywhere) {
  test::allowLog("Mismatched NCCL_SHM_DISABLE");
  Params off;
  off.topology.shmDisable = true;
  for (const auto& result : agreeAll(plainPeers(2), {proposalOf(Params{}), proposalOf(off)})) {
    EXPECT_EQ(result.status().code(), ncclInvalidUsage);
  }
}

/// Links as a table says.
class TableTransport final : public transport::Transport {
 public:
  explicit TableTransport(std::vector<transport::LinkQuality> qualities) : qualities_(std::move(qualities)) {}
  std::string_view name() const override { return "FAKE"; }
  Result<bool> reachable(const topo::PeerInfo&, const topo::PeerInfo&) const override { return true; }
  Result<transport::LinkQuality> judge(const topo::PeerInfo&, const topo::PeerInfo& peer) const override {
    return qualities_[static_cast<std::size_t>(peer.rank)];
  }
  Result<std::unique_ptr<transport::Endpoint>> openSend(const transport::LinkSpec&) override {
    return Status(ncclInternalError);
  }
  Result<std::unique_ptr<transport::Endpoint>> openRecv(const transport::LinkSpec&) override {
    return Status(ncclInternalError);
  }

 private:
  std::vector<transport::LinkQuality> qualities_;
};

LinkAbilities abilitiesWith(std::vector<transport::LinkQuality> qualities, const std::vector<topo::PeerInfo>& peers) {
  std::vector<std::unique_ptr<transport::Transport>> transports;
  transports.push_back(std::make_unique<TableTransport>(std::move(qualities)));
  const topo::RankLayout layout(0, peers);
  const auto abilities = abilitiesOf(transports, peers, topo::treesOf(layout, 0).neighbours(), 0);
  EXPECT_TRUE(abilities.ok());
  return abilities.value();
}

TEST(Abilities, EverythingWhereAllLinksAreGood) {
  constexpr auto kWhole = transport::LinkQuality::WholeLines;
  EXPECT_EQ(abilitiesWith({kWhole, kWhole, kWhole, kWhole}, plainPeers(4)), (LinkAbilities{1, 1, 1, 1}));
}

TEST(Abilities, AMissingLinkCountsWhereItIsNeeded) {
  constexpr auto kPlain = transport::LinkQuality::Plain;
  // Rank 0 of 8 has rank 1 in its chain; 1, 2, 4, 6, 7 in PAT.
  std::vector<transport::LinkQuality> links(8, kPlain);
  links[3] = transport::LinkQuality::None;
  EXPECT_EQ(abilitiesWith(links, plainPeers(8)), (LinkAbilities{1, 1, 0, 0}));
  links = std::vector<transport::LinkQuality>(8, kPlain);
  links[4] = transport::LinkQuality::None;
  EXPECT_EQ(abilitiesWith(links, plainPeers(8)), (LinkAbilities{1, 0, 0, 0}));
  links = std::vector<transport::LinkQuality>(8, kPlain);
  links[1] = transport::LinkQuality::None;
  EXPECT_EQ(abilitiesWith(links, plainPeers(8)), (LinkAbilities{0, 0, 0, 0}));
}

TEST(Abilities, DirectAlgorithmsStayOnOneHost) {
  std::vector<topo::PeerInfo> peers = plainPeers(2);
  peers[1].hostHash = 5;
  EXPECT_EQ(abilitiesWith({transport::LinkQuality::Plain, transport::LinkQuality::Plain}, peers),
            (LinkAbilities{1, 1, 0, 1}));
}

topo::AgreedGraphs nvlinkGraphs() {
  topo::AgreedGraphs graphs;
  for (const topo::GraphId id : {topo::GraphId::Ring, topo::GraphId::Tree}) {
    topo::GraphSummary& graph = graphs.graphs[static_cast<std::size_t>(id)];
    graph.channels = 12;
    graph.bwIntra = 20;
    graph.typeIntra = topo::PathType::Nvl;
  }
  graphs.amdOrMixedCpus = true;
  return graphs;
}

TEST(Agreement, GraphsSayWhatLinksAreAndCarry) {
  Agreement agreement;
  agreement.nChannels = 24;
  agreement.lowestComputeCapability = agreement.highestComputeCapability = 80;
  topo::AgreedGraphs graphs = nvlinkGraphs();
  const auto peers = plainPeers(4);
  const topo::RankLayout layout(0, peers);
  RankFacts ranks = rankFactsFrom(agreement, layout, peers, &graphs);
  EXPECT_EQ(ranks.path, PathClass::NVLink);
  EXPECT_TRUE(ranks.amdOrMixedCpus);
  const Speeds speeds = speedsFrom(agreement, ranks, &graphs);
  EXPECT_EQ(speeds.ring.intra, 20);
  EXPECT_EQ(speeds.ring.channels, 12);
  EXPECT_NEAR(speeds.mesh, 12 * 20 * 0.85, 0.01) << "twelve channels' worth, not twenty-four's";
  graphs.graphs[0].typeIntra = topo::PathType::Phb;
  EXPECT_EQ(rankFactsFrom(agreement, layout, peers, &graphs).path, PathClass::Pci);
  EXPECT_FALSE(rankFactsFrom(agreement, layout, peers, &graphs).ll128Safe);
}

TEST(Agreement, RanksThatShareADeviceAreCounted) {
  auto peers = plainPeers(5);
  for (std::size_t rank = 0; rank < peers.size(); ++rank)
    peers[rank].deviceUuid = {static_cast<std::uint8_t>(rank + 1)};
  EXPECT_EQ(rankFactsFrom({}, topo::RankLayout(0, peers), peers, nullptr).mostOnOneDevice, 1);
  peers[4].deviceUuid = peers[2].deviceUuid = peers[1].deviceUuid;
  peers[3].deviceUuid = peers[0].deviceUuid;
  EXPECT_EQ(rankFactsFrom({}, topo::RankLayout(0, peers), peers, nullptr).mostOnOneDevice, 3);
}

TEST(Agreement, NodesWithoutAWayToANicAreSlowNotApart) {
  Agreement agreement;
  RankFacts ranks;
  ranks.nRanks = 4;
  ranks.nNodes = 2;
  const topo::AgreedGraphs graphs = nvlinkGraphs();
  EXPECT_GT(speedsFrom(agreement, ranks, &graphs).ring.inter, 0);
  agreement.links.tree = 0;
  EXPECT_FALSE(speedsFrom(agreement, ranks, &graphs).tree.connected());
}

}  // namespace
}  // namespace tutti::comm
