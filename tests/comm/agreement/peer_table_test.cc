#include "comm/agreement/peer_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/log.h"
#include "comm/agreement/plain_peer.h"
#include "support/fake_control_channel.h"
#include "support/log_capture.h"
#include "support/thread_ranks.h"

namespace tutti::comm {
namespace {

TEST(PeerTable, EverybodySeesEverybody) {
  test::FakeWorld world(3);
  test::runRanks(3, [&](int rank) {
    const auto peers = gatherPeers(world.channel(rank), test::plainPeer(rank, 3));
    ASSERT_TRUE(peers.ok());
    for (int r = 0; r < 3; ++r) EXPECT_EQ(peers.value()[static_cast<std::size_t>(r)].rank, r);
  });
}

TEST(PeerTable, VersionMismatchIsRefusedByNameOnAllRanks) {
  test::allowLog("Mismatched NCCL version detected : rank 0 (host node, pid 0) has 2.32.3, rank 2");
  test::FakeWorld world(3);
  test::runRanks(3, [&](int rank) {
    topo::PeerInfo self = test::plainPeer(rank, 3);
    if (rank == 2) self.version = 22809;
    EXPECT_EQ(gatherPeers(world.channel(rank), self).status().code(), ncclInvalidUsage);
  });
  EXPECT_NE(test::capturedText().find("2.28.9"), std::string::npos);
}

TEST(PeerTable, DifferentNumbersOfRanksAreRefusedByName) {
  test::allowLog(
      "Mismatched number of ranks : rank 0 (host node, pid 0) was started with 2, rank 1 (host node, pid 0) with 5");
  test::FakeWorld world(2);
  test::runRanks(2, [&](int rank) {
    EXPECT_EQ(gatherPeers(world.channel(rank), test::plainPeer(rank, rank == 0 ? 2 : 5)).status().code(),
              ncclInvalidUsage);
  });
}

TEST(PeerTable, SoftwareGpuAndDriverDoNotMix) {
  test::allowLog("the software GPU");
  test::FakeWorld world(2);
  test::runRanks(2, [&](int rank) {
    topo::PeerInfo self = test::plainPeer(rank, 2);
    self.softGpu = static_cast<std::uint32_t>(rank);
    EXPECT_EQ(gatherPeers(world.channel(rank), self).status().code(), ncclInvalidUsage);
  });
}

TEST(PeerTable, RanksThatShareAGpuAreBothNamedWhereThatIsForbidden) {
  std::vector<topo::PeerInfo> peers;
  for (int rank = 0; rank < 4; ++rank) {
    peers.push_back(test::plainPeer(rank, 4));
    peers.back().deviceUuid[3] = static_cast<std::uint8_t>(rank);
  }
  EXPECT_TRUE(refuseSharedDevices(peers).ok());
  peers[3].deviceUuid = peers[1].deviceUuid;
  peers[3].hostHash = 5;
  EXPECT_TRUE(refuseSharedDevices(peers).ok()) << "on another host it is another GPU";
  peers[3].hostHash = peers[1].hostHash;
  test::expectLog("Duplicate GPU detected : rank 1 (host node, pid 0) and rank 3 (host node, pid 0)");
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(refuseSharedDevices(peers).code(), ncclInvalidUsage);
  EXPECT_TRUE(std::string(lastErrorText()).ends_with("or by CUDA_VISIBLE_DEVICES")) << lastErrorText();
  test::expectLog("or by CUDA_VISIBLE_DEVICES (in this process: 2,3)");
  ::setenv("CUDA_VISIBLE_DEVICES", "2,3", 1);
  EXPECT_EQ(refuseSharedDevices(peers).code(), ncclInvalidUsage);
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(PeerTable, OnlyRanksOfOneProcessOnOneGpuShareADevice) {
  std::vector<topo::PeerInfo> peers;
  for (int rank = 0; rank < 3; ++rank) {
    peers.push_back(test::plainPeer(rank, 3));
    peers.back().processHash = 7;
    peers.back().deviceUuid[3] = static_cast<std::uint8_t>(rank);
  }
  EXPECT_FALSE(sharesDeviceInProcess(peers, 1));
  peers[2].deviceUuid = peers[1].deviceUuid;
  EXPECT_FALSE(sharesDeviceInProcess(peers, 0));
  EXPECT_TRUE(sharesDeviceInProcess(peers, 1));
  EXPECT_TRUE(sharesDeviceInProcess(peers, 2));
  peers[2].processHash = 8;
  EXPECT_FALSE(sharesDeviceInProcess(peers, 1)) << "another process has another context";
  peers[2].processHash = 7;
  peers[2].hostHash = 5;
  EXPECT_FALSE(sharesDeviceInProcess(peers, 1)) << "on another host it is another GPU";
}

}  // namespace
}  // namespace tutti::comm
