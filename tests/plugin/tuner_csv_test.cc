// The example plugin that reads its decisions from a file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/log.h"
#include "plugin/tuner.h"
#include "support/log_capture.h"
#include "support/scoped_log.h"

namespace tutti::test {
namespace {

/// The plugin, begun with a file of that content for so many ranks on two nodes.
struct CsvTuner {
  std::string file = ::testing::TempDir() + "tuner_csv_test." + std::to_string(::getpid());
  ScopedEnv setting{"TUNER_CSV_FILE", file.c_str()};
  DlLibrary library;
  std::unique_ptr<plugin::TunerPlugin> plugin;
  std::unique_ptr<plugin::Tuner> tuner;
  Status status;

  explicit CsvTuner(const std::string& content, std::size_t nRanks = 4) {
    std::ofstream(file) << content;
    const char* path = std::getenv("TUTTI_TEST_TUNER_CSV");
    std::string why;
    library = DlLibrary::open(path != nullptr ? path : "libnccl-tuner-csv.so", &why);
    EXPECT_TRUE(library.valid()) << why;
    plugin = plugin::findTuner(library, "csv");
    if (plugin == nullptr) return;
    ncclTunerConstants_v5_t constants{};
    auto opened = plugin->open({.who = "rank 0", .nRanks = nRanks, .nNodes = 2}, constants);
    status = opened.ok() ? Status() : opened.status();
    if (opened.ok()) tuner = std::move(opened).value();
  }
  CsvTuner(const CsvTuner&) = delete;
  ~CsvTuner() { std::filesystem::remove(file); }

  /// "algorithm/protocol/channels" of the quickest, where a tree takes 20 us and a ring 10, each in every protocol a
  /// little longer than in the one before.
  std::string choice(ncclFunc_t func, std::size_t bytes) const {
    plugin::TunerTimes times{};
    for (auto& row : times) row.fill(-1);
    times[NCCL_ALGO_TREE] = {20, 21, 22};
    times[NCCL_ALGO_RING] = {10, 11, 12};
    int nChannels = 0;
    EXPECT_TRUE(tuner->times({func, bytes, 1, false}, times, nChannels).ok());
    int best = -1;
    for (int i = 0; i < NCCL_NUM_ALGORITHMS * NCCL_NUM_PROTOCOLS; ++i) {
      const auto at = [&](int n) { return times[n / NCCL_NUM_PROTOCOLS][n % NCCL_NUM_PROTOCOLS]; };
      if (at(i) >= 0 && (best < 0 || at(i) < at(best))) best = i;
    }
    return std::to_string(best / NCCL_NUM_PROTOCOLS) + "/" + std::to_string(best % NCCL_NUM_PROTOCOLS) + "/" +
           std::to_string(nChannels);
  }
};

TEST(TunerCsv, TakesTheFirstLineThatFits) {
  const CsvTuner csv(
      "# collective,min bytes,max bytes,algorithm,protocol,channels,nodes,ranks\n"
      "\n"
      "allreduce,0,100,tree,ll128,-1,-1,8\n"  // other communicators'
      "allreduce,0,100,tree,ll,-1,1,4\n"
      "allreduce, 0 ,100, Tree,SIMPLE,2,2,4\n"
      "allreduce,101,-1,-1,ll128,-1,-1,-1\n"
      "broadcast,-1,-1,tree,-1,-1,-1,-1\n"
      "reduce,-1,-1,pat,simple,3,-1,-1\n"  // not to be had
      "-1,5000,-1,-1,-1,7,-1,-1\n");
  ASSERT_NE(csv.tuner, nullptr) << lastErrorText();
  EXPECT_EQ(csv.choice(ncclFuncAllReduce, 0), "0/2/2");
  EXPECT_EQ(csv.choice(ncclFuncAllReduce, 100), "0/2/2");
  EXPECT_EQ(csv.choice(ncclFuncAllReduce, 101), "1/1/0");
  EXPECT_EQ(csv.choice(ncclFuncBroadcast, 9), "0/0/0");
  EXPECT_EQ(csv.choice(ncclFuncReduce, 9), "1/0/3");
  EXPECT_EQ(csv.choice(ncclFuncAllGather, 4999), "1/0/0");
  EXPECT_EQ(csv.choice(ncclFuncAllGather, 5000), "1/0/7");
}

TEST(TunerCsv, NamesLinesThatItCannotRead) {
  const struct {
    const char* line;
    const char* why;
  } rows[] = {
      {"allreduce,0,100,tree,ll,-1,-1", "it has not eight fields"},
      {"allreduce,0,100,tree,ll,-1,-1,-1,-1", "it has not eight fields"},
      {"alltoall,0,100,tree,ll,-1,-1,-1", "unknown collective"},
      {"allreduce,x,100,tree,ll,-1,-1,-1", "sizes are no numbers"},
      {"allreduce,0,-2,tree,ll,-1,-1,-1", "sizes are no numbers"},
      {"allreduce,9,8,tree,ll,-1,-1,-1", "the largest size is below the smallest"},
      {"allreduce,0,100,oneshot,ll,-1,-1,-1", "unknown algorithm"},
      {"allreduce,0,100,tree,fast,-1,-1,-1", "unknown protocol"},
      {"allreduce,0,100,tree,ll,many,-1,-1", "channels, nodes or ranks are no numbers"},
  };
  allowLog("line 2 of ");
  for (const auto& row : rows) {
    const CsvTuner csv(std::string("# first\n") + row.line + "\n");
    EXPECT_EQ(csv.status.code(), ncclInvalidUsage) << row.line;
    EXPECT_NE(std::string(lastErrorText()).find(std::string(row.why) + ": " + row.line), std::string::npos)
        << lastErrorText();
  }
}

TEST(TunerCsv, WantsAFile) {
  allowLog("init failed with");
  allowLog("TUNER_CSV_FILE names no file");
  allowLog("cannot open ");
  {
    const ScopedEnv none("TUNER_CSV_FILE", "");
    CsvTuner csv("");
    ncclTunerConstants_v5_t constants{};
    ::setenv("TUNER_CSV_FILE", "", 1);
    EXPECT_EQ(csv.plugin->open({.who = "rank 0"}, constants).status().code(), ncclInvalidUsage);
    ::setenv("TUNER_CSV_FILE", "/nowhere/at/all.csv", 1);
    EXPECT_EQ(csv.plugin->open({.who = "rank 0"}, constants).status().code(), ncclSystemError);
    EXPECT_NE(std::string(lastErrorText()).find("cannot open /nowhere/at/all.csv: No such file"), std::string::npos);
  }
}

}  // namespace
}  // namespace tutti::test
