#include "comm/agreement/comm_graphs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <utility>

#include "base/log.h"
#include "comm/agreement/own_machine.h"
#include "comm/settings/topology_settings.h"
#include "support/fake_control_channel.h"
#include "support/log_capture.h"
#include "support/thread_ranks.h"
#include "topo/channels/inter_node.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"
#include "topo/search/graph_xml.h"
#include "topo/search/topology.h"
#include "topo/xml/topology_xml.h"

namespace tutti::comm {
namespace {

/// Four GPUs, each joined to each by an NVLink, in pairs under two switches; two NICs.
constexpr const char* kMachine = R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49" affinity="ff">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" gdr="1"><nvlink target="0000:03:00.0" count="4" tclass="0x030200"/>
          <nvlink target="0000:12:00.0" count="4" tclass="0x030200"/>
          <nvlink target="0000:13:00.0" count="4" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="80" gdr="1"><nvlink target="0000:02:00.0" count="4" tclass="0x030200"/>
          <nvlink target="0000:12:00.0" count="4" tclass="0x030200"/>
          <nvlink target="0000:13:00.0" count="4" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:04:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" dev="0" speed="200000" port="1" guid="0x1" gdr="1" maxconn="131072"/></nic>
      </pci>
    </pci>
    <pci busid="0000:11:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:12:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="2" sm="80" gdr="1"><nvlink target="0000:02:00.0" count="4" tclass="0x030200"/>
          <nvlink target="0000:03:00.0" count="4" tclass="0x030200"/>
          <nvlink target="0000:13:00.0" count="4" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:13:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="3" sm="80" gdr="1"><nvlink target="0000:02:00.0" count="4" tclass="0x030200"/>
          <nvlink target="0000:03:00.0" count="4" tclass="0x030200"/>
          <nvlink target="0000:12:00.0" count="4" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:14:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_1" dev="1" speed="200000" port="1" guid="0x2" gdr="1" maxconn="131072"/></nic>
      </pci>
    </pci>
  </cpu>
</system>
)";

constexpr std::int64_t kBusIds[]{0x2000, 0x3000, 0x12000, 0x13000};  // 0000:02:00.0 and so on, packed

OwnMachine machineOf(std::string_view text) {
  return ownMachine(topo::parseTopology(text, "test").value());
}

/// Ranks in order of hosts, on GPUs 0, 1, … of each.
class Nodes {
 public:
  Nodes(int nodes, int perNode) : control_(nodes * perNode), peers_(static_cast<std::size_t>(nodes * perNode)) {
    for (int r = 0; r < nodes * perNode; ++r) {
      topo::PeerInfo& peer = peers_[static_cast<std::size_t>(r)];
      peer.rank = r;
      peer.hostHash = static_cast<std::uint64_t>(r / perNode) + 7;
      peer.busId = kBusIds[r % perNode];
      peer.hostName = {'n', static_cast<char>('0' + r / perNode)};
      machines_.push_back(machineOf(kMachine));
    }
    settings_.resize(peers_.size());
  }
  int size() const { return static_cast<int>(peers_.size()); }
  topo::PeerInfo& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  OwnMachine& machine(int rank) { return machines_[static_cast<std::size_t>(rank)]; }
  TopologySettings& settings(int rank) { return settings_[static_cast<std::size_t>(rank)]; }

  /// Runs the stage on all ranks; `check` hears of each.
  void run(const std::function<void(int, const topo::RankLayout&, const Result<CommGraphs>&)>& check) {
    for (int r = 0; r < size(); ++r) peer(r).machineHash = machine(r).hash;
    test::runRanks(size(), [&](int rank) {
      const topo::RankLayout layout(rank, peers_);
      check(rank, layout, findGraphs({control_.channel(rank), peers_, layout, settings(rank)}, machine(rank)));
    });
  }
  /// Channels of all ranks, which must be known.
  std::vector<topo::RankChannels> channels(int nChannels) {
    std::vector<topo::RankChannels> all(peers_.size());
    run([&](int rank, const topo::RankLayout& layout, const Result<CommGraphs>& graphs) {
      ASSERT_TRUE(graphs.ok());
      ASSERT_TRUE(graphs.value().known());
      all[static_cast<std::size_t>(rank)] = channelsOf(graphs.value(), layout, nChannels).value();
    });
    return all;
  }

 private:
  test::FakeWorld control_;
  std::vector<topo::PeerInfo> peers_;
  std::vector<OwnMachine> machines_;
  std::vector<TopologySettings> settings_;
};

/// A folder of the test's own, gone with it.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("tutti-topology-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, std::string_view text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

/// Lets the GRAPH and ENV lines through.
class GraphLog {
 public:
  GraphLog() {
    ::setenv("NCCL_DEBUG", "INFO", 1);
    ::setenv("NCCL_DEBUG_SUBSYS", "GRAPH,ENV", 1);
    resetLog();
  }
  GraphLog(const GraphLog&) = delete;
  ~GraphLog() {
    ::unsetenv("NCCL_DEBUG");
    ::unsetenv("NCCL_DEBUG_SUBSYS");
    resetLog();
  }
};

void expectRings(const std::vector<topo::RankChannels>& all) {
  for (int c = 0; c < all.front().size(); ++c) {
    std::vector<int> seen;
    int rank = 0;
    do {
      seen.push_back(rank);
      const topo::RankChannel& own = all[static_cast<std::size_t>(rank)].channels[static_cast<std::size_t>(c)];
      EXPECT_EQ(all[static_cast<std::size_t>(own.next)].channels[static_cast<std::size_t>(c)].prev, rank);
      rank = own.next;
    } while (rank != 0 && seen.size() <= all.size());
    EXPECT_EQ(seen.size(), all.size()) << "channel " << c;
  }
}

TEST(FindGraphs, OneNodeGetsRingsAlongItsLinks) {
  Nodes nodes(1, 4);
  const std::vector<topo::RankChannels> all = nodes.channels(8);
  expectRings(all);
  EXPECT_GT(all[0].rings.size(), 1U) << "all NVLinks are used, not those of one order alone";
}

TEST(FindGraphs, TwoNodesAgreeOnRingsThroughBoth) {
  Nodes nodes(2, 4);
  expectRings(nodes.channels(4));
}

TEST(FindGraphs, OneRankThatKnowsNothingLeavesAllWithout) {
  Nodes nodes(2, 2);
  nodes.machine(3) = OwnMachine{};
  nodes.run([](int, const topo::RankLayout& layout, const Result<CommGraphs>& graphs) {
    ASSERT_TRUE(graphs.ok());
    EXPECT_FALSE(graphs.value().known());
    EXPECT_EQ(channelsOf(graphs.value(), layout, 2).value().channels[0].next, (layout.rank() + 1) % 4);
  });
}

TEST(FindGraphs, AGpuThatTheMachineDoesNotHaveLeavesAllWithout) {
  const GraphLog heard;
  Nodes nodes(2, 2);
  nodes.peer(2).busId = 0x990;
  // The file is read where there is a machine, before anybody knows that not all have one.
  const Folder folder;
  nodes.settings(0).graphFile = folder.write("graphs.xml", "<graphs version=\"1\"/>");
  nodes.run([](int, const topo::RankLayout&, const Result<CommGraphs>& graphs) {
    ASSERT_TRUE(graphs.ok());
    EXPECT_FALSE(graphs.value().known());
  });
  const std::string log = test::capturedText();
  EXPECT_NE(log.find("(bus id 0000:00:99.0) is not among"), std::string::npos) << log;
  EXPECT_NE(log.find("Rank 2 on host n1 has no graphs: rings follow the ranks' numbers"), std::string::npos) << log;
  EXPECT_NE(log.find("graphs.xml is not used: rings follow the ranks' numbers"), std::string::npos) << log;
}

TEST(FindGraphs, GpusThatOnlyTheNetworkWouldJoinLeaveAllWithout) {
  Nodes nodes(1, 2);
  for (int r = 0; r < 2; ++r) nodes.settings(r).paths.p2pDisabled = nodes.settings(r).paths.shmDisabled = true;
  nodes.run([](int, const topo::RankLayout&, const Result<CommGraphs>& graphs) {
    ASSERT_TRUE(graphs.ok());
    EXPECT_FALSE(graphs.value().known());
  });
}

TEST(FindGraphs, MoreRanksOnANodeThanWordsCanTellOfGetNone) {
  std::vector<topo::PeerInfo> peers(topo::kMostLocalRanks + 1);
  for (topo::PeerInfo& peer : peers) peer.machineHash = 1;
  test::FakeWorld control(1);
  const auto graphs =
      findGraphs({control.channel(0), peers, topo::RankLayout(0, peers), TopologySettings{}}, OwnMachine{});
  ASSERT_TRUE(graphs.ok()) << "and nobody is waited for";
  EXPECT_FALSE(graphs.value().known());
}

TEST(FindGraphs, ElementsThatMakeNoMachineAreAnErrorWhereAFileWasNamed) {
  test::allowLog("arch");
  std::string text = kMachine;
  constexpr std::string_view kArch = " arch=\"x86_64\"";
  text.erase(text.find(kArch), kArch.size());
  for (const bool named : {false, true}) {
    Nodes nodes(1, 2);
    for (int r = 0; r < 2; ++r) {
      nodes.machine(r) = machineOf(text);
      if (named) nodes.settings(r).file = "machine.xml";
    }
    nodes.run([&](int, const topo::RankLayout&, const Result<CommGraphs>& graphs) {
      EXPECT_EQ(graphs.status().code(), named ? ncclInvalidUsage : ncclSuccess);
      EXPECT_FALSE(graphs.ok() && graphs.value().known());
    });
  }
}

TEST(FindGraphs, WhatRanksOfANodeKnowApartIsPutTogether) {
  Nodes nodes(1, 4);
  const std::vector<topo::RankChannels> alike = nodes.channels(8);
  std::string text = kMachine;
  // What rank 1 does not use it may know otherwise.
  constexpr std::string_view kOther = "dev=\"3\" sm=\"80\"";
  text.replace(text.find(kOther), kOther.size(), "dev=\"3\" sm=\"86\"");
  nodes.machine(1) = machineOf(text);
  const std::vector<topo::RankChannels> joined = nodes.channels(8);
  expectRings(joined);
  EXPECT_EQ(joined[2].rings, alike[2].rings);
  EXPECT_NE(nodes.machine(1).hash, nodes.machine(0).hash);
}

TEST(FindGraphs, GpusThatAreEachTheFirstOfTheirContainerAreToldApart) {
  const std::string numbered = std::regex_replace(kMachine, std::regex("<gpu dev=.[0-9]."), "<gpu dev=\"0\"");
  const std::string text = std::regex_replace(numbered, std::regex("<nvlink [^>]*>"), "");
  for (const int mate : {2, 3}) {
    Nodes nodes(1, 4);
    for (int r = 0; r < 4; ++r) nodes.machine(r) = machineOf(text);
    std::swap(nodes.peer(1).busId, nodes.peer(mate).busId);  // now rank 0 and its mate share a switch
    const std::vector<topo::RankChannels> all = nodes.channels(2);
    expectRings(all);
    for (const topo::RankChannel& channel : all[0].channels) EXPECT_TRUE(channel.next == mate || channel.prev == mate);
  }
}

TEST(FindGraphs, ARefusalThatOneRankKnowsOfCountsForAllOfTheNode) {
  Nodes nodes(1, 4);
  // Between GPUs 0 and 1; a container of the other ranks hides it.
  nodes.machine(2) = ownMachine(topo::parseTopology(kMachine, "test").value(),
                                {{0x2000, 0x3000, "not supported"}, {0x3000, 0x2000, "not supported"}});
  for (int r = 0; r < 4; ++r) nodes.settings(r).paths.p2p.ignore = 1;
  for (const topo::RankChannels& own : nodes.channels(8)) {
    for (const std::vector<int>& ring : own.rings) {
      const auto zero = static_cast<std::size_t>(std::find(ring.begin(), ring.end(), 0) - ring.begin());
      EXPECT_NE(ring[(zero + 1) % 4], 1);
      EXPECT_NE(ring[(zero + 3) % 4], 1);
    }
  }
}

TEST(FindGraphs, ARefusalBetweenGpusThatNvlinkJoinsNamesBothAndTheHost) {
  test::allowLog("NVML on host n0 says that GPU 0 (0000:02:00.0) cannot access GPU 1 (0000:03:00.0) directly, no luck");
  Nodes nodes(1, 2);
  for (int r = 0; r < 2; ++r) {
    nodes.machine(r) = ownMachine(topo::parseTopology(kMachine, "test").value(), {{0x2000, 0x3000, "no luck"}});
  }
  nodes.run([](int, const topo::RankLayout&, const Result<CommGraphs>& graphs) {
    EXPECT_EQ(graphs.status().code(), ncclUnhandledCudaError);
  });
  EXPECT_NE(test::capturedText().find("NVML on host n0 says"), std::string::npos);
}

TEST(FindGraphs, AGraphFileTakesThePlaceOfTheSearch) {
  const Folder folder;
  Nodes nodes(1, 4);
  const std::string file = folder.write("graphs.xml", R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="2" speedintra="20" speedinter="20" typeintra="NVL" typeinter="PIX" samechannels="0">
    <channel><gpu dev="0"/><gpu dev="2"/><gpu dev="1"/><gpu dev="3"/></channel>
    <channel><gpu dev="0"/><gpu dev="3"/><gpu dev="1"/><gpu dev="2"/></channel>
  </graph>
</graphs>
)");
  for (int r = 0; r < 4; ++r) nodes.settings(r).graphFile = file;
  const std::vector<topo::RankChannels> all = nodes.channels(2);
  expectRings(all);
  EXPECT_EQ(all[0].channels[0].next, 2);
  EXPECT_EQ(all[0].channels[1].next, 3);
  EXPECT_EQ(all[2].channels[0].next, 1);
}

TEST(FindGraphs, GraphsThatDifferWithinANodeAreRefusedByName) {
  test::allowLog("rank 0 and rank 1 of host n0");
  const Folder folder;
  Nodes nodes(1, 2);
  nodes.settings(1).graphFile = folder.write("graphs.xml", R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="3" speedinter="3" typeintra="SYS" typeinter="PIX" samechannels="1">
    <channel><gpu dev="1"/><gpu dev="0"/></channel>
  </graph>
</graphs>
)");
  nodes.run([](int, const topo::RankLayout&, const Result<CommGraphs>& graphs) {
    EXPECT_EQ(graphs.status().code(), ncclInvalidUsage);
  });
  EXPECT_NE(test::capturedText().find("NCCL_GRAPH_FILE"), std::string::npos);
}

TEST(FindGraphs, ABrokenGraphFileIsAnErrorWithItsLine) {
  test::expectLog("graphs.xml, line 3");
  const Folder folder;
  Nodes nodes(1, 1);
  nodes.settings(0).graphFile = folder.write("graphs.xml", R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="3" speedinter="3" typeintra="SYS" typeinter="PIX" samechannels="1">
    <channel><gpu dev="9"/></channel>
  </graph>
</graphs>
)");
  nodes.settings(0).graphDump = {folder.file("out.xml"), 0};
  nodes.run([](int, const topo::RankLayout&, const Result<CommGraphs>& graphs) {
    EXPECT_EQ(graphs.status().code(), ncclInvalidUsage);
  });
}

TEST(FindGraphs, DumpsAreWrittenByTheirRanksAndCanBeReadAgain) {
  const Folder folder;
  Nodes nodes(2, 2);
  for (int r = 0; r < 4; ++r) {
    nodes.settings(r).dump = {folder.file("machine.xml"), 2};
    nodes.settings(r).graphDump = {folder.file("graphs.xml"), 3};
  }
  nodes.channels(2);
  auto machine = topo::readTopologyFile(folder.file("machine.xml"));
  ASSERT_TRUE(machine.ok());
  EXPECT_NE(topo::writeXml(machine.value()).find("rank=\"3\""), std::string::npos) << "GPUs of the second node";
  topo::TopologyUse use;
  use.interNode = true;
  const auto topology = topo::buildTopology(machine.value(), use, {});
  ASSERT_TRUE(topology.ok());
  const auto graphs = topo::readGraphFile(folder.file("graphs.xml"), topology.value().machine, true);
  ASSERT_TRUE(graphs.ok());
  EXPECT_GT(graphs.value().ring.nChannels(), 0);
}

TEST(FindGraphs, ADumpThatCannotBeWrittenIsAnErrorThatSaysWhichRankWhereAndWhy) {
  test::expectLog(
      "cannot write /nonexistent/machine.xml (NCCL_TOPO_DUMP_FILE, rank 0 on host n0): No such file or directory (2)");
  Nodes nodes(1, 1);
  nodes.settings(0).dump = {"/nonexistent/machine.xml", 0};
  nodes.run([](int, const topo::RankLayout&, const Result<CommGraphs>& graphs) {
    EXPECT_EQ(graphs.status().code(), ncclSystemError);
  });
  nodes.settings(0).dump = {};
  nodes.settings(0).graphDump = {"/dev/null/graphs.xml", 0};
  test::expectLog("(NCCL_GRAPH_DUMP_FILE, rank 0 on host n0): Not a directory (20)");
  nodes.run([](int, const topo::RankLayout&, const Result<CommGraphs>& graphs) {
    EXPECT_EQ(graphs.status().code(), ncclSystemError);
  });
}

}  // namespace
}  // namespace tutti::comm
