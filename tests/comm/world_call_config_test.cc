// Collectives with options of their own: what is selected is what runs, on all ranks, in groups and in graphs.
#include <string>

#include "comm/graph.h"
#include "comm/launch/launch.h"
#include "comm/state/communicator.h"
#include "comm/world.h"
#include "gpu/event.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;
using test::withComm;

constexpr std::size_t kCount = 5000;

ncclCollConfig_t selecting(const char* text) {
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  config.algSelection = text;
  return config;
}

ncclResult_t allReduce(const Member& m, const Ints& in, const Ints& out, const ncclCollConfig_t* config) {
  return ncclAllReduceConfig(in.at(), out.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream(), config);
}

/// "AllReduce Ring LL": what the last kernel ran by.
std::string lastKernel(const Member& m) {
  return m.comm->parts.launcher->lastLaunch();
}

TEST(WorldCallConfig, WhatIsSelectedRuns) {
  withComm(3, [](Member& m) {
    const Ints in(m.gpu, kCount, m.rank + 1);
    for (const char* const text : {"Ring/LL", "Ring/LL128", "ring,simple", "Tree,LL", "TREE/SIMPLE", "OneShot/LL",
                                   "Direct,Simple", "^Tree,OneShot,Direct,PAT"}) {
      const Ints out(m.gpu, kCount, -1);
      const ncclCollConfig_t config = selecting(text);
      ASSERT_EQ(allReduce(m, in, out, &config), ncclSuccess) << text << ": " << ncclGetLastError(m.comm);
      m.sync();
      EXPECT_EQ(out.read(), std::vector<int>(kCount, 6)) << text;
      const std::string ran = lastKernel(m);
      const auto expects = [&](const char* word, const char* part) {
        if (std::string(text).find(word) == 0) {
          EXPECT_NE(ran.find(part), std::string::npos) << text << ": " << ran;
        }
      };
      expects("Ring/LL128", "_Ring_LL128_");
      expects("ring,simple", "_Ring_Simple_");
      expects("Tree,LL", "_Tree_LL_");
      expects("TREE/SIMPLE", "_Tree_Simple_");
      expects("OneShot/LL", "_OneShot_LL_");
      expects("Direct,Simple", "_Direct_Simple_");
      expects("^", "_Ring_");
    }
  });
}

TEST(WorldCallConfig, EveryCollectiveTakesOne) {
  withComm(2, [](Member& m) {
    const ncclCollConfig_t ring = selecting("Ring,Simple");
    const ncclCollConfig_t none = NCCL_COLLCONFIG_INITIALIZER;
    const Ints in(m.gpu, std::vector<int>{m.rank * 10 + 1, m.rank * 10 + 2, m.rank * 10 + 3, m.rank * 10 + 4});
    const auto check = [&](const char* name, ncclResult_t result, const Ints& out, const std::vector<int>& expected) {
      EXPECT_EQ(result, ncclSuccess) << name << ": " << ncclGetLastError(m.comm);
      m.sync();
      EXPECT_EQ(out.read(), expected) << name << " on rank " << m.rank;
    };
    const Ints four(m.gpu, 4, -1);
    check("AllReduce", ncclAllReduceConfig(in.at(), four.at(), 4, ncclInt32, ncclSum, m.comm, m.stream(), &ring), four,
          {12, 14, 16, 18});
    check("Broadcast", ncclBroadcastConfig(in.at(), four.at(), 4, ncclInt32, 1, m.comm, m.stream(), &ring), four,
          {11, 12, 13, 14});
    const std::vector<int> kept{11, 12, 13, 14};
    check("Reduce", ncclReduceConfig(in.at(), four.at(), 4, ncclInt32, ncclMax, 0, m.comm, m.stream(), &ring), four,
          kept);
    const Ints eight(m.gpu, 8, -1);
    const std::vector<int> all{1, 2, 3, 4, 11, 12, 13, 14};
    check("AllGather", ncclAllGatherConfig(in.at(), eight.at(), 4, ncclInt32, m.comm, m.stream(), &ring), eight, all);
    const Ints two(m.gpu, 2, -1);
    check("ReduceScatter", ncclReduceScatterConfig(in.at(), two.at(), 2, ncclInt32, ncclSum, m.comm, m.stream(), &ring),
          two, m.rank == 0 ? std::vector<int>{12, 14} : std::vector<int>{16, 18});
    check("AlltoAll", ncclAlltoAllConfig(in.at(), four.at(), 2, ncclInt32, m.comm, m.stream(), &none), four,
          m.rank == 0 ? std::vector<int>{1, 2, 11, 12} : std::vector<int>{3, 4, 13, 14});
    const Ints gathered(m.gpu, 8, -1);
    check("Gather", ncclGatherConfig(in.at(), gathered.at(), 4, ncclInt32, 1, m.comm, m.stream(), &none), gathered,
          m.rank == 1 ? all : std::vector<int>(8, -1));
    check("Scatter", ncclScatterConfig(in.at(), two.at(), 2, ncclInt32, 0, m.comm, m.stream(), &none), two,
          m.rank == 0 ? std::vector<int>{1, 2} : std::vector<int>{3, 4});
    check("null", ncclAllReduceConfig(in.at(), four.at(), 4, ncclInt32, ncclSum, m.comm, m.stream(), nullptr), four,
          {12, 14, 16, 18});
  });
}

TEST(WorldCallConfig, CallsOfAGroupChooseEachForThemselves) {
  withComm(3, [](Member& m) {
    const Ints in(m.gpu, kCount, m.rank + 1);
    const Ints first(m.gpu, kCount, -1);
    const Ints second(m.gpu, kCount, -1);
    const ncclCollConfig_t ring = selecting("Ring/Simple");
    const ncclCollConfig_t tree = selecting("Tree/LL");
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(allReduce(m, in, first, &ring), ncclSuccess);
    EXPECT_EQ(allReduce(m, in, second, &tree), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    m.sync();
    EXPECT_EQ(first.read(), std::vector<int>(kCount, 6));
    EXPECT_EQ(second.read(), std::vector<int>(kCount, 6));
    EXPECT_EQ(m.comm->parts.launcher->counts().operations, 2U) << "two kernels";
  });
}

TEST(WorldCallConfig, GraphsKeepTheChoiceAndTheEvent) {
  withComm(2, [](Member& m) {
    const Ints in(m.gpu, kCount, m.rank + 1);
    const Ints out(m.gpu, kCount, -1);
    gpu::Event event = gpu::Event::create(m.gpu).value();
    ncclCollConfig_t config = selecting("Ring/LL");
    config.launchCompletionEvent = reinterpret_cast<cudaEvent_t>(event.get());
    {
      const auto graph = test::Recording::of(
          m.stream(), [&] { ASSERT_EQ(allReduce(m, in, out, &config), ncclSuccess) << ncclGetLastError(m.comm); });
      graph->launch(m.stream());
      m.sync();
      EXPECT_EQ(out.read(), std::vector<int>(kCount, 3));
      EXPECT_TRUE(event.done().value());
    }
    ASSERT_EQ(allReduce(m, in, out, &config), ncclSuccess);
    EXPECT_TRUE(event.wait(nullptr).ok());
    m.sync();
  });
}

TEST(WorldCallConfig, OneEventOfACommunicatorInAGroup) {
  test::allowLog("launchCompletionEvent");
  withComm(2, [](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    gpu::Event event = gpu::Event::create(m.gpu).value();
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    config.launchCompletionEvent = reinterpret_cast<cudaEvent_t>(event.get());
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(allReduce(m, data, data, &config), ncclSuccess);
    EXPECT_EQ(allReduce(m, data, data, &config), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    EXPECT_EQ(allReduce(m, data, data, &config), ncclSuccess) << "the communicator goes on";
    m.sync();
  });
}

TEST(WorldCallConfig, WhatIsImpossibleIsRefusedWithWhatIsPossible) {
  test::allowLog("algSelection");
  withComm(2, [](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    ncclCollConfig_t config = selecting("NVLS");
    EXPECT_EQ(allReduce(m, data, data, &config), ncclInvalidArgument);
    const std::string text = ncclGetLastError(m.comm);
    EXPECT_NE(text.find("Without algSelection: "), std::string::npos) << text;
    EXPECT_NE(text.find("RING/LL "), std::string::npos) << text;
    config.forceAlgSelection = 0;
    EXPECT_EQ(allReduce(m, data, data, &config), ncclSuccess) << "the library chooses";
    m.sync();
    config = selecting("Rings");
    EXPECT_EQ(allReduce(m, data, data, &config), ncclInvalidArgument);
    EXPECT_NE(std::string(ncclGetLastError(m.comm)).find("\"Rings\""), std::string::npos);
    config = selecting("Ring");
    EXPECT_EQ(ncclAlltoAllConfig(data.at(), data.at() + 1000, 10, ncclInt32, m.comm, m.stream(), &config),
              ncclInvalidArgument)
        << "made of messages";
  });
}

TEST(WorldCallConfig, BoundsOfBlocksAreChecked) {
  test::allowLog("maxCTAs");
  test::allowLog("NCCL_COLLCONFIG_INITIALIZER");
  const ncclUniqueId id = test::newId();
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    ncclConfig_t ofComm = NCCL_CONFIG_INITIALIZER;
    ofComm.minCTAs = 4;
    ofComm.maxCTAs = 4;
    Member m{rank, 2, nullptr, test::device(rank), gpu::Stream::create(test::device(rank)).value()};
    ASSERT_EQ(ncclCommInitRankConfig(&m.comm, 2, id, rank, &ofComm), ncclSuccess);
    const Ints data(m.gpu, kCount, 1);
    ncclCollConfig_t config = selecting("Ring/Simple");
    config.minCTAs = 3;
    config.maxCTAs = 4;
    EXPECT_EQ(allReduce(m, data, data, &config), ncclSuccess) << ncclGetLastError(m.comm);
    m.sync();
    EXPECT_EQ(m.comm->parts.launcher->lastNote().nChannels, 1U) << "the software GPU has no more";
    config.maxCTAs = 5;
    EXPECT_EQ(allReduce(m, data, data, &config), ncclInvalidArgument) << "more than the communicator's";
    config.maxCTAs = 2;
    EXPECT_EQ(allReduce(m, data, data, &config), ncclInvalidArgument) << "less than minCTAs";
    config = selecting("Ring");
    config.magic = 0;
    EXPECT_EQ(allReduce(m, data, data, &config), ncclInvalidArgument);
    EXPECT_EQ(ncclCommDestroy(m.comm), ncclSuccess);
  });
}

TEST(WorldCallConfig, OlderAndNewerStructsAreUnderstoodByTheirSize) {
  withComm(2, [](Member& m) {
    const Ints in(m.gpu, kCount, m.rank + 1);
    const Ints out(m.gpu, kCount, -1);
    struct Newer {
      ncclCollConfig_t known = NCCL_COLLCONFIG_INITIALIZER;
      long long added[4] = {1, 2, 3, 4};
    } newer;
    newer.known.size = sizeof(newer);
    newer.known.version = 23900;
    newer.known.algSelection = "Ring/LL";
    ASSERT_EQ(allReduce(m, in, out, &newer.known), ncclSuccess);
    m.sync();
    EXPECT_EQ(out.read(), std::vector<int>(kCount, 3));
    ncclCollConfig_t older = selecting("Ring/LL");
    older.size = 64;  // of 2.31, without the event
    older.version = 23102;
    older.launchCompletionEvent = reinterpret_cast<cudaEvent_t>(std::uintptr_t{16});  // what lies behind it
    ASSERT_EQ(allReduce(m, in, out, &older), ncclSuccess);
    m.sync();
  });
}

}  // namespace
}  // namespace tutti::comm
