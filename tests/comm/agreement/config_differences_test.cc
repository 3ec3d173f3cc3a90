#include "comm/agreement/config_differences.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "comm/settings/config.h"
#include "support/log_capture.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {
namespace {

/// Of ranks that have nothing but the defaults.
std::vector<ncclConfig_t> defaults(std::size_t ranks) {
  return std::vector<ncclConfig_t>(ranks, parseConfig(nullptr, undefinedConfig()).value().values);
}

/// What `rank` is told.
std::vector<std::string> warningsOn(int rank, const std::vector<ncclConfig_t>& configs) {
  std::vector<topo::PeerInfo> peers(configs.size());
  std::vector<ComparedOptions> options;
  for (std::size_t r = 0; r < configs.size(); ++r) {
    peers[r].rank = static_cast<int>(r);
    peers[r].hostName = {'n', 'o', 'd', 'e'};
    peers[r].pid = 100 + static_cast<int>(r);
    options.push_back(comparedOptions(configs[r]));
  }
  const std::size_t before = test::capturedLog().size();
  warnOfDifferences(peers, options, rank);
  std::vector<std::string> lines = test::capturedLog();
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(before));
  return lines;
}

TEST(ConfigDifferences, AreWarningsWithNameRanksAndValues) {
  test::allowLog("Comm config");
  struct Case {
    const char* name;
    int ncclConfig_t::*member;
    int value;
    const char* text;
  };
  for (const Case& one :
       {Case{"trafficClass", &ncclConfig_t::trafficClass, 5, "has none, rank 2 (host node, pid 102) has 5"},
        Case{"graphUsageMode", &ncclConfig_t::graphUsageMode, 0, "has 2, rank 2 (host node, pid 102) has 0"},
        Case{"graphStreamOrdering", &ncclConfig_t::graphStreamOrdering, 0, "has 1, rank 2 (host node, pid 102) has 0"},
        Case{"splitShare", &ncclConfig_t::splitShare, 1, "has 0, rank 2 (host node, pid 102) has 1"},
        Case{"shrinkShare", &ncclConfig_t::shrinkShare, 1, "has 0, rank 2 (host node, pid 102) has 1"}}) {
    std::vector<ncclConfig_t> configs = defaults(4);
    configs[2].*one.member = one.value;
    const std::string shall =
        std::string("Comm config ") + one.name + " differs : rank 0 (host node, pid 100) " + one.text + ": ";
    for (const int rank : {0, 2}) {
      const std::vector<std::string> lines = warningsOn(rank, configs);
      ASSERT_EQ(lines.size(), 1U) << one.name << " on rank " << rank;
      EXPECT_NE(lines.front().find(shall), std::string::npos) << lines.front();
    }
    for (const int rank : {1, 3}) EXPECT_TRUE(warningsOn(rank, configs).empty()) << "they have what rank 0 has";
  }
}

TEST(ConfigDifferences, OfWhatIsEachRanksOwnOrDecidedOtherwiseThereIsNoWord) {
  std::vector<ncclConfig_t> configs = defaults(2);
  configs[1].blocking = 0;
  configs[1].minCTAs = 2;
  configs[1].maxCTAs = 4;
  configs[1].maxP2pPeers = 1;
  configs[1].nChannelsPerNetPeer = 4;
  configs[1].CTAPolicy = 1;
  for (const int rank : {0, 1}) EXPECT_TRUE(warningsOn(rank, configs).empty());
}

}  // namespace
}  // namespace tutti::comm
