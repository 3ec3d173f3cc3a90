// Tuners of every version: what they are told, what becomes of their answers, and how their errors read.
#include "plugin/tuner.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <string>

#include "base/log.h"
#include "plugin/tuner_fixture.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

constexpr int kVersions[] = {2, 3, 4, 5, 6};

plugin::TunerOpening openingOf(int nRanks) {
  return {.who = "rank 1 of 4",
          .commId = 0xabc,
          .nRanks = static_cast<std::size_t>(nRanks),
          .nNodes = 2,
          .domains = {2, 1, 3}};
}

/// Everything takes 10 us but CollNet and NVLS, which cannot be had.
plugin::TunerTimes usualTimes() {
  plugin::TunerTimes times{};
  for (auto& row : times) row.fill(-1);
  for (const int a : {NCCL_ALGO_TREE, NCCL_ALGO_RING}) times[a].fill(10);
  return times;
}

constexpr std::size_t kConstants = sizeof(ncclTunerConstants_v5_t) / sizeof(double);
using ConstantsInOrder = std::array<double, kConstants>;

/// No two alike.
ConstantsInOrder differentConstants() {
  ConstantsInOrder all;
  std::iota(all.begin(), all.end(), 1.5);
  return all;
}

std::array<int, 3> inOrder(const ncclNvlDomainInfo_v5_t& domains) {
  return std::bit_cast<std::array<int, 3>>(domains);
}

/// A test tuner, loaded; and begun, where that succeeds.
struct OpenTuner {
  TunerRules rules;
  DlLibrary library;
  std::unique_ptr<plugin::TunerPlugin> plugin;
  ncclTunerConstants_v5_t constants = std::bit_cast<ncclTunerConstants_v5_t>(differentConstants());
  std::unique_ptr<plugin::Tuner> tuner;
  Status status;

  OpenTuner(int version, const std::string& given) : rules(given) {
    std::string why;
    library = DlLibrary::open(tunerPath(version), &why);
    EXPECT_TRUE(library.valid()) << why;
    plugin = plugin::findTuner(library, tunerPath(version));
    if (plugin == nullptr) return;
    auto opened = plugin->open(openingOf(4), constants);
    status = opened.ok() ? Status() : opened.status();
    if (opened.ok()) tuner = std::move(opened).value();
  }
};

TEST(TunerPlugins, OfEveryVersionAreFoundAndTold) {
  for (const int version : kVersions) {
    SCOPED_TRACE(version);
    OpenTuner open(version, "");
    ASSERT_NE(open.tuner, nullptr);
    EXPECT_EQ(open.plugin->version(), version);
    EXPECT_EQ(open.plugin->name(), "tunerv" + std::to_string(version));
    plugin::TunerTimes times = usualTimes();
    int nChannels = 7;
    ASSERT_TRUE(open.tuner->times({ncclFuncReduceScatter, 4096, 3, true}, times, nChannels).ok());
    EXPECT_EQ(times, usualTimes());
    EXPECT_EQ(nChannels, 0);
    const TestTunerRecord record = recordOf(version);
    EXPECT_EQ(record.nRanks, 4u);
    EXPECT_EQ(record.nNodes, 2u);
    EXPECT_EQ(record.func, ncclFuncReduceScatter);
    EXPECT_EQ(record.bytes, 4096u);
    EXPECT_EQ(record.pipeOps, 3);
    EXPECT_EQ(record.channelsIn, 0);
    if (version >= 3) {
      EXPECT_EQ(record.nAlgorithms, 7);
      EXPECT_EQ(record.nProtocols, 3);
      plugin::TunerTimes told;
      std::memcpy(&told, record.times, sizeof told);
      EXPECT_EQ(told, usualTimes());
      EXPECT_EQ(record.registered, version == 3 ? -1 : 1);
    }
    EXPECT_EQ(record.commId, version >= 5 ? 0xabcu : 0u);
    EXPECT_EQ(inOrder(record.domains), version >= 5 ? inOrder({2, 1, 3}) : inOrder({}));
    EXPECT_EQ(std::bit_cast<ConstantsInOrder>(record.constants),
              version >= 5 ? differentConstants() : ConstantsInOrder{});
    EXPECT_EQ(std::bit_cast<ConstantsInOrder>(open.constants), differentConstants()) << "it has changed none";
    open.tuner.reset();
    EXPECT_EQ(recordOf(version).ends, 1);
    EXPECT_EQ(recordOf(version).strangers, 0);
  }
}

TEST(TunerPlugins, ForceWhatTheyChooseAndSayHowManyChannels) {
  for (const int version : kVersions) {
    SCOPED_TRACE(version);
    OpenTuner open(version, "take=0/1,channels=5");
    plugin::TunerTimes times = usualTimes();
    int nChannels = 0;
    ASSERT_TRUE(open.tuner->times({}, times, nChannels).ok());
    EXPECT_EQ(times[0][1], 0);
    EXPECT_EQ(times[1][1], 10);
    EXPECT_EQ(nChannels, 5);
  }
}

TEST(TunerPlugins, OfVersion2AreIgnoredWhereTheyAnswerWhatCannotBe) {
  for (const char* answer : {"take=2/2", "take=7/0", "take=0/3", "take=-1/0", "take=1/-1", ""}) {
    OpenTuner open(2, answer);
    plugin::TunerTimes times = usualTimes();
    int nChannels = 0;
    ASSERT_TRUE(open.tuner->times({}, times, nChannels).ok());
    EXPECT_EQ(times, usualTimes()) << answer;
  }
}

TEST(TunerPlugins, OfVersion2AreToldWhetherCollNetAndNvlsCanBeHad) {
  OpenTuner open(2, "");
  const auto told = [&](int algorithm) {
    plugin::TunerTimes times = usualTimes();
    if (algorithm >= 0) times[algorithm][NCCL_PROTO_SIMPLE] = 1;
    int nChannels = 0;
    EXPECT_TRUE(open.tuner->times({}, times, nChannels).ok());
    const TestTunerRecord record = recordOf(2);
    EXPECT_EQ(record.algorithmIn, -1);
    EXPECT_EQ(record.protocolIn, -1);
    return record.collNet * 10 + record.nvls;
  };
  EXPECT_EQ(told(-1), 0);
  EXPECT_EQ(told(NCCL_ALGO_COLLNET_DIRECT), 0);
  EXPECT_EQ(told(NCCL_ALGO_COLLNET_CHAIN), 10);
  EXPECT_EQ(told(NCCL_ALGO_NVLS), 1);
  EXPECT_EQ(told(NCCL_ALGO_NVLS_TREE), 1);
}

TEST(TunerPlugins, ChangeConstantsFromVersion5On) {
  for (const int version : kVersions) {
    OpenTuner one(version, "base=1/2/99.5");
    ConstantsInOrder expected = differentConstants();
    if (version >= 5) expected[1 * NCCL_NUM_PROTOCOLS + 2] = 99.5;
    EXPECT_EQ(std::bit_cast<ConstantsInOrder>(one.constants), expected) << version;
    OpenTuner all(version, "twice");
    expected = differentConstants();
    for (double& constant : expected) constant *= version >= 5 ? 2 : 1;
    EXPECT_EQ(std::bit_cast<ConstantsInOrder>(all.constants), expected) << version;
  }
}

TEST(TunerPlugins, CutChunksFromVersion6On) {
  for (const int version : kVersions) {
    SCOPED_TRACE(version);
    OpenTuner open(version, "size=1234");
    EXPECT_EQ(open.tuner->cutsChunks(), version >= 6);
    std::size_t bytes = 512;
    ASSERT_TRUE(open.tuner->chunk({ncclFuncReduce, 99, 1, false}, 1, 2, 3, bytes).ok());
    EXPECT_EQ(bytes, version >= 6 ? 1234u : 512u);
    const TestTunerRecord record = recordOf(version);
    if (version < 6) continue;
    EXPECT_EQ(record.chunkFunc, ncclFuncReduce);
    EXPECT_EQ(record.chunkBytes, 99u);
    EXPECT_EQ(record.chunkAlgorithm, 1);
    EXPECT_EQ(record.chunkProtocol, 2);
    EXPECT_EQ(record.chunkChannels, 3);
    EXPECT_EQ(record.chunkIn, 512u);
  }
}

TEST(TunerPlugins, ErrorsNamePluginLibraryCallRankAndTheirWords) {
  for (const int version : kVersions) {
    SCOPED_TRACE(version);
    const std::string start = "tuner tunerv" + std::to_string(version) + " (v" + std::to_string(version) + " of " +
                              tunerPath(version) + "), rank 1 of 4: ";
    allowLog("went wrong");
    allowLog("tuner tunerv");
    {
      OpenTuner open(version, "init");
      EXPECT_EQ(open.tuner, nullptr);
      EXPECT_EQ(open.status.code(), ncclSystemError);
      EXPECT_EQ(lastErrorText(), start + "init failed with ncclSystemError; it said: init went wrong");
      EXPECT_EQ(recordOf(version).ends, 0) << "what was not begun is not ended";
    }
    plugin::TunerTimes times = usualTimes();
    int nChannels = 0;
    {
      OpenTuner open(version, "info,silent,odd-code,end");
      EXPECT_EQ(open.tuner->times({}, times, nChannels).code(), ncclInternalError);
      EXPECT_EQ(lastErrorText(),
                start + "getCollInfo failed with 77, which is no result code, and the tuner said nothing");
    }
    if (version < 6) continue;
    OpenTuner open(version, "chunk");
    std::size_t bytes = 1;
    EXPECT_EQ(open.tuner->chunk({}, 1, 2, 3, bytes).code(), ncclSystemError);
    EXPECT_EQ(lastErrorText(), start + "getChunkSize failed with ncclSystemError; it said: chunk went wrong");
  }
}

ncclResult_t initOnly(void** context, uint64_t, size_t, size_t, ncclDebugLogger_t, ncclNvlDomainInfo_v5_t*,
                      ncclTunerConstants_v5_t*) {
  *context = nullptr;
  return ncclSuccess;
}

}  // namespace

// A tuner that is part of this program, for STATIC_PLUGIN, and can no more than begin.
extern "C" {
NCCL_PLUGIN_EXPORT extern const ncclTuner_v5_t ncclTunerPlugin_v5;
const ncclTuner_v5_t ncclTunerPlugin_v5 = {.name = "inProgram", .init = &initOnly};
}

namespace {

TEST(TunerPlugins, MayLackEveryFunctionButInit) {
  std::string why;
  const DlLibrary program = DlLibrary::openProgram(&why);
  const auto plugin = plugin::findTuner(program, "STATIC_PLUGIN");
  ASSERT_NE(plugin, nullptr);
  ncclTunerConstants_v5_t constants{};
  const auto tuner = plugin->open(openingOf(4), constants).value();
  plugin::TunerTimes times = usualTimes();
  int nChannels = 3;
  EXPECT_TRUE(tuner->times({}, times, nChannels).ok());
  EXPECT_EQ(times, usualTimes());
  EXPECT_EQ(nChannels, 0);
  EXPECT_FALSE(tuner->cutsChunks());
}

}  // namespace
}  // namespace tutti::test
