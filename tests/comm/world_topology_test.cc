// Communicators on a software GPU that looks like a machine: channels follow the graphs of its links, each its own ring
// and tree. Run with SOFTGPU_TOPO naming a machine of eight GPUs.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "comm/connect/channels.h"
#include "comm/connect/neighbours.h"
#include "comm/state/communicator.h"
#include "comm/world.h"
#include "topo/machine/path_settings.h"
#include "topo/search/graph_xml.h"
#include "topo/search/topology.h"
#include "topo/xml/topology_xml.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;
using test::withComm;

constexpr int kRanks = 8;

/// A setting for one test. No thread of the test runs while it changes.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  Setting(const Setting&) = delete;
  ~Setting() { ::unsetenv(name_); }  // NOLINT(concurrency-mt-unsafe)

 private:
  const char* name_;
};

class WorldTopology : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("tutti-world-topology-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const char* name) const { return (folder_ / name).string(); }
  std::string write(const char* name, std::string_view text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }

  static const std::vector<topo::RankChannel>& channels(const test::Member& m) {
    return m.comm->parts.channels->neighbours().channels;
  }

 private:
  std::filesystem::path folder_;
};

void expectSums(const test::Member& m, std::size_t count) {
  const test::Ints in(m.gpu, test::countUp(m.rank, count));
  const test::Ints out(m.gpu, count, -1);
  EXPECT_EQ(ncclAllReduce(in.at(), out.at(), count, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
  m.sync();
  std::vector<int> expected(count);
  for (std::size_t i = 0; i < count; ++i) expected[i] = m.size * static_cast<int>(i) + m.size * (m.size - 1) / 2;
  EXPECT_EQ(out.read(), expected) << count << " elements";
}

void expectGathered(const test::Member& m, std::size_t count) {
  const test::Ints in(m.gpu, test::countUp(m.rank * static_cast<int>(count), count));
  const test::Ints out(m.gpu, count * static_cast<std::size_t>(m.size), -1);
  EXPECT_EQ(ncclAllGather(in.at(), out.at(), count, ncclInt32, m.comm, m.stream()), ncclSuccess);
  m.sync();
  EXPECT_EQ(out.read(), test::countUp(0, count * static_cast<std::size_t>(m.size))) << count << " elements";
}

void expectScattered(const test::Member& m, std::size_t count) {
  const test::Ints in(m.gpu, test::countUp(0, count * static_cast<std::size_t>(m.size)));
  const test::Ints out(m.gpu, count, -1);
  EXPECT_EQ(ncclReduceScatter(in.at(), out.at(), count, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
  m.sync();
  std::vector<int> expected = test::countUp(m.rank * static_cast<int>(count), count);
  for (int& value : expected) value *= m.size;
  EXPECT_EQ(out.read(), expected) << count << " elements";
}

void expectRooted(const test::Member& m, std::size_t count, int root) {
  const test::Ints in(m.gpu, test::countUp(m.rank, count));
  const test::Ints copy(m.gpu, count, -1);
  const test::Ints sum(m.gpu, count, -1);
  EXPECT_EQ(ncclBroadcast(in.at(), copy.at(), count, ncclInt32, root, m.comm, m.stream()), ncclSuccess);
  EXPECT_EQ(ncclReduce(in.at(), sum.at(), count, ncclInt32, ncclSum, root, m.comm, m.stream()), ncclSuccess);
  m.sync();
  EXPECT_EQ(copy.read(), test::countUp(root, count)) << count << " elements";
  if (m.rank != root) return;
  const std::vector<int> read = sum.read();
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(read[i], m.size * static_cast<int>(i) + m.size * (m.size - 1) / 2) << i;
  }
}

void expectExchanged(const test::Member& m, std::size_t count) {
  const test::Ints in(m.gpu, count, m.rank);
  std::vector<std::unique_ptr<test::Ints>> out;
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (int peer = 0; peer < m.size; ++peer) {
    out.push_back(std::make_unique<test::Ints>(m.gpu, count, -1));
    EXPECT_EQ(ncclSend(in.at(), count, ncclInt32, peer, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclRecv(out.back()->at(), count, ncclInt32, peer, m.comm, m.stream()), ncclSuccess);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  m.sync();
  for (int peer = 0; peer < m.size; ++peer) {
    EXPECT_EQ(out[static_cast<std::size_t>(peer)]->read(), std::vector<int>(count, peer));
  }
}

void expectEverythingRight(const test::Member& m) {
  for (const std::size_t count : {1U, 777U, 60'001U}) {
    expectSums(m, count);
    expectGathered(m, count);
    expectScattered(m, count);
    expectRooted(m, count, 5 % m.size);
  }
  expectExchanged(m, 40'000);
}

TEST_F(WorldTopology, ChannelsHaveRingsOfTheirOwnAndAllCollectivesAreRight) {
  test::withComm(kRanks, [](test::Member& m) {
    std::set<int> nexts;
    for (const topo::RankChannel& channel : channels(m)) nexts.insert(channel.next);
    EXPECT_GT(nexts.size(), 1U) << "a cube of NVLinks is not used by one ring alone";
    expectEverythingRight(m);
  });
}

class WorldTopologyAlgorithms : public WorldTopology, public testing::WithParamInterface<const char*> {};

TEST_P(WorldTopologyAlgorithms, AreRightOnEveryChannel) {
  const Setting algo("NCCL_ALGO", std::string("AllReduce:") + GetParam());
  for (const char* protocol : {"LL", "LL128", "Simple"}) {
    const Setting proto("NCCL_PROTO", protocol);
    test::withComm(kRanks, [](test::Member& m) {
      for (const std::size_t count : {1U, 60'001U}) expectSums(m, count);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, WorldTopologyAlgorithms, testing::Values("Ring", "Tree"),
                         [](const auto& one) { return std::string(one.param); });

TEST_F(WorldTopology, FewerRanksThanGpusGetRingsOfTheirOwn) {
  test::withComm(5, [](test::Member& m) { expectEverythingRight(m); });
}

TEST_F(WorldTopology, RanksThatShareGpusAreInTheGraphsToo) {
  test::withComm(
      4,
      [](test::Member& m) {
        EXPECT_GT(channels(m).size(), 1U);
        const test::Ints in(m.gpu, 5000, m.rank);
        const test::Ints out(m.gpu, 5000, -1);
        EXPECT_EQ(ncclAllReduce(in.at(), out.at(), 5000, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
        m.sync();
        EXPECT_EQ(out.read(), std::vector<int>(5000, 6));
        EXPECT_EQ(ncclCommDestroy(m.comm), ncclSuccess);
        m.comm = nullptr;
      },
      2);
}

TEST_F(WorldTopology, AGraphFileGivesTheRings) {
  std::string text =
      "<graphs version=\"1\">\n  <graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"2\" speedintra=\"20\" "
      "speedinter=\"20\" typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"0\">\n";
  for (const int step : {3, 5}) {
    text += "    <channel>";
    for (int i = 0; i < kRanks; ++i) text += "<gpu dev=\"" + std::to_string(i * step % kRanks) + "\"/>";
    text += "</channel>\n";
  }
  const Setting graphs("NCCL_GRAPH_FILE", write("graphs.xml", text + "  </graph>\n</graphs>\n"));
  test::withComm(kRanks, [](test::Member& m) {
    ASSERT_GE(channels(m).size(), 2U);
    EXPECT_EQ(channels(m)[0].next, (m.rank + 3) % kRanks);
    EXPECT_EQ(channels(m)[1].next, (m.rank + 5) % kRanks);
    expectEverythingRight(m);
  });
}

TEST_F(WorldTopology, DumpsCanBeReadAgainAndForced) {
  std::vector<int> nexts(kRanks);
  {
    const Setting machine("NCCL_TOPO_DUMP_FILE", file("machine.xml"));
    const Setting graphs("NCCL_GRAPH_DUMP_FILE", file("graphs.xml"));
    test::withComm(kRanks, [&](test::Member& m) { nexts[static_cast<std::size_t>(m.rank)] = channels(m)[0].next; });
  }
  const auto machine = topo::readTopologyFile(file("machine.xml"));
  ASSERT_TRUE(machine.ok());
  const auto topology = topo::buildTopology(machine.value(), {}, {});
  ASSERT_TRUE(topology.ok());
  const auto graphs = topo::readGraphFile(file("graphs.xml"), topology.value().machine, false);
  ASSERT_TRUE(graphs.ok());
  EXPECT_GT(graphs.value().ring.nChannels(), 0);
  EXPECT_GT(graphs.value().tree.nChannels(), 0);
  const Setting topo("NCCL_TOPO_FILE", file("machine.xml"));
  const Setting forced("NCCL_GRAPH_FILE", file("graphs.xml"));
  test::withComm(kRanks,
                 [&](test::Member& m) { EXPECT_EQ(channels(m)[0].next, nexts[static_cast<std::size_t>(m.rank)]); });
}

TEST_F(WorldTopology, AMissingTopologyFileIsIgnored) {
  const Setting topo("NCCL_TOPO_FILE", file("no such file.xml"));
  test::withComm(2, [](test::Member& m) { expectSums(m, 1000); });
}

TEST_F(WorldTopology, ABrokenTopologyFileFailsInitWithItsLine) {
  test::allowLog("broken.xml");
  const Setting topo("NCCL_TOPO_FILE",
                     write("broken.xml", "<system version=\"1\">\n  <cpu numaid=\"x\">\n</system>\n"));
  const ncclUniqueId id = test::newId();
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclInvalidUsage);
  });
  EXPECT_NE(test::capturedText().find("line"), std::string::npos) << test::capturedText();
}

}  // namespace
}  // namespace tutti::comm
