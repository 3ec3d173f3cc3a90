// Whether the ranks of a communicator may have CollNet, and who is told why not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "comm/collnet/reasons.h"
#include "comm/collnet/wishes.h"
#include "comm/settings/comm_settings.h"
#include "support/fake_control_channel.h"
#include "support/thread_ranks.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {
namespace {

/// Ranks of as many hosts, each with so many devices (PeerInfo::collNetDevices).
std::vector<topo::PeerInfo> peersWith(std::vector<int> devices) {
  std::vector<topo::PeerInfo> peers;
  for (const int count : devices) {
    topo::PeerInfo& peer = peers.emplace_back();
    peer.rank = static_cast<int>(peers.size()) - 1;
    peer.hostName = {'h', static_cast<char>('a' + peer.rank)};
    peer.collNetDevices = count;
  }
  return peers;
}

CollNetObstacle obstacle(std::vector<int> devices, bool ignoresMismatch = false) {
  CommSettings settings;
  settings.collNet.ignoresMismatch = ignoresMismatch;
  const auto peers = peersWith(devices);
  return collNetObstacle(peers, static_cast<int>(peers.size()), settings);
}

TEST(CollNetObstacle, IsNoneWhereAllRanksHaveAsManyDevices) {
  EXPECT_EQ(obstacle({2, 2, 2}).why, "");
}

TEST(CollNetObstacle, NamesTwoRanksOfWhichOneHasNotEnabledIt) {
  const CollNetObstacle found = obstacle({2, -1, 2});
  EXPECT_EQ(found.why,
            "CollNet is not enabled on rank 1 on host hb, and is on rank 0 on host ha (NCCL_COLLNET_ENABLE, or "
            "collnetEnable of the configuration)");
  EXPECT_TRUE(found.mismatch);
  EXPECT_EQ(found.lacking, -1);
}

TEST(CollNetObstacle, NamesTwoRanksWithOtherNumbersOfDevices) {
  for (const int least : {0, 1}) {
    const CollNetObstacle found = obstacle({2, 2, least});
    const std::string number = std::to_string(least);
    EXPECT_EQ(found.why, "Detected mixed local CollNet device counts across ranks (min " + number +
                             ", max 2): rank 2 on host hc has " + number + " and rank 0 on host ha has 2");
    EXPECT_TRUE(found.mismatch);
    EXPECT_EQ(found.lacking, 2);
  }
}

TEST(CollNetObstacle, IsNoOtherNumberOfDevicesIfThatIsAllowed) {
  EXPECT_EQ(obstacle({2, 2, 1}, true).why, "");
  const CollNetObstacle found = obstacle({2, 2, 0}, true);
  EXPECT_EQ(found.why, "rank 2 on host hc has no collNet plugin with a device (NCCL_NET_PLUGIN)");
  EXPECT_EQ(found.lacking, 2);
}

TEST(CollNetObstacle, IsNoMistakeOnOneHostWhateverTheRanksHave) {
  for (const int other : {-1, 0, 1}) {
    const auto peers = peersWith({2, other});
    const CollNetObstacle found = collNetObstacle(peers, 1, CommSettings{});
    EXPECT_NE(found.why.find("Communicator has 1 nodes which is less than CollNet node threshold 2"),
              std::string::npos);
    EXPECT_FALSE(found.mismatch);
    EXPECT_EQ(found.lacking, -1);
  }
}

TEST(CollNetObstacle, IsExplainedByTheFirstRankWhoseNetworkDoesNotWork) {
  const CollNetObstacle found{.why = "nothing there", .lacking = 0};
  const auto peers = peersWith({0, 0, 0});
  const RankReason quiet = explained(found, peers, std::vector<RankReason>{{"a"}, {"b"}, {"c"}});
  EXPECT_EQ(quiet.why, "nothing there. rank 0 on host ha: a");
  EXPECT_FALSE(quiet.failed) << "what is not there is no failure";
  const RankReason loud = explained(found, peers, std::vector<RankReason>{{"a"}, {"b", true}, {"c", true}});
  EXPECT_EQ(loud.why, "nothing there. rank 1 on host hb: b");
  EXPECT_TRUE(loud.failed);
}

TEST(CollNetObstacle, OfRanksThatDifferIsAMistakeWithARemedy) {
  const CollNetObstacle found{.why = "different", .lacking = 0, .mismatch = true};
  const auto peers = peersWith({0, 1});
  const RankReason whole = explained(found, peers, std::vector<RankReason>(2));
  EXPECT_EQ(
      whole.why,
      "different. Load the same plugin with the same devices on all hosts, or set NCCL_IGNORE_COLLNET_MISMATCH=1");
  EXPECT_TRUE(whole.failed);
  EXPECT_EQ(explained({.why = "different", .mismatch = true}, peers, {}).why, "different");
}

TEST(RankReasons, ComeFromAllRanksUpToALength) {
  test::FakeWorld world(3);
  test::runRanks(3, [&](int rank) {
    const RankReason own{std::string(rank == 2 ? 5000 : 3, static_cast<char>('a' + rank)), rank == 1};
    const auto gathered = gatherReasons(world.channel(rank), own);
    ASSERT_TRUE(gathered.ok());
    ASSERT_EQ(gathered.value().size(), 3U);
    EXPECT_EQ(gathered.value()[0].why, "aaa");
    EXPECT_EQ(gathered.value()[2].why, std::string(1022, 'c'));
    for (int r = 0; r < 3; ++r) EXPECT_EQ(gathered.value()[static_cast<std::size_t>(r)].failed, r == 1);
  });
}

}  // namespace
}  // namespace tutti::comm
