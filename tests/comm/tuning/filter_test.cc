#include "comm/tuning/filter.h"

#include <gtest/gtest.h>

#include "support/log_capture.h"

namespace tutti::comm {
namespace {

using device::Algorithm;
using device::Func;
using device::Protocol;

/// Digits of a row in the order of the enumerations: "110000211".
template <class Row>
std::string digits(const Row& row) {
  std::string text;
  for (const Permission p : row) text += static_cast<char>('0' + static_cast<int>(p));
  return text;
}

std::string algorithms(const TuningFilter& filter, device::Func func) {
  return digits(filter.algorithms[static_cast<std::size_t>(func)]);
}
std::string protocols(const TuningFilter& filter, device::Func func) {
  return digits(filter.protocols[static_cast<std::size_t>(func)]);
}

struct GoodCase {
  const char* algo;
  const char* proto;
  device::Func func;
  const char* algorithms;  ///< Tree Ring CollNetDirect CollNetChain NVLS NVLSTree PAT OneShot Direct
  const char* protocols;   ///< LL LL128 Simple
};

TEST(TuningFilter, EveryFormOfAListSaysWhatItMeans) {
  const GoodCase kCases[] = {
      {"", "", device::Func::AllReduce, "111111211", "121"},
      {"Ring", "Simple", device::Func::AllReduce, "010000000", "001"},
      {"rInG,TREE", "ll,SIMPLE", device::Func::Broadcast, "110000000", "101"},
      {"^Ring", "^LL", device::Func::AllReduce, "101111211", "021"},
      {"^PAT,ring", "^LL128", device::Func::AllGather, "101111011", "101"},
      {"PAT", "LL128", device::Func::AllGather, "000000100", "010"},
      {"OneShot,Direct", "", device::Func::AllReduce, "000000011", "121"},
      {"Ring;AllReduce:Tree", "Simple;allreduce:LL", device::Func::AllReduce, "100000000", "100"},
      {"Ring;AllReduce:Tree", "Simple;allreduce:LL", device::Func::Reduce, "010000000", "001"},
      {"AllReduce:Tree", "Broadcast:^Simple", device::Func::Broadcast, "111111211", "120"},
      {"AllReduce:Tree;Broadcast:Ring;AllReduce:^Tree", "", device::Func::AllReduce, "011111211", "121"},
      {"CollNetDirect,CollNetChain,NVLS,NVLSTree", "", device::Func::AllReduce, "001111000", "121"},
      {"Ring;", ";Simple", device::Func::AllReduce, "010000000", "001"},
      {"Ring,,Tree", "", device::Func::AllReduce, "110000000", "121"},
  };
  for (const GoodCase& c : kCases) {
    const auto filter = parseTuningFilter(c.algo, c.proto);
    ASSERT_TRUE(filter.ok()) << c.algo << " | " << c.proto;
    EXPECT_EQ(algorithms(filter.value(), c.func), c.algorithms) << c.algo;
    EXPECT_EQ(protocols(filter.value(), c.func), c.protocols) << c.proto;
    EXPECT_EQ(filter.value().restricted(), *c.algo != 0 || *c.proto != 0);
  }
}

struct BadCase {
  const char* algo;
  const char* proto;
  const char* message;
};

TEST(TuningFilter, EveryMistakeIsRefusedByName) {
  const BadCase kCases[] = {
      {"Rings", "", "NCCL_ALGO: unknown name \"Rings\"; known are Tree, Ring, CollNetDirect"},
      {"Ring, Tree", "", "NCCL_ALGO: unknown name \" Tree\""},
      {"", "LL64", "NCCL_PROTO: unknown name \"LL64\"; known are LL, LL128, Simple"},
      {"Ring;Tree", "", "NCCL_ALGO: \"Tree\" names no function"},
      {"AllReduce:Ring;Tree", "", "NCCL_ALGO: \"Tree\" names no function"},
      {"Gather:Ring", "", "NCCL_ALGO: unknown function \"Gather\""},
      {"AllReduce:", "", "NCCL_ALGO: a list without names"},
      {"^", "", "NCCL_ALGO: a list without names"},
      {"Ring,^Tree", "", "NCCL_ALGO: unknown name \"^Tree\""},
      {"", "AllReduce:LL;Simple", "NCCL_PROTO: \"Simple\" names no function"},
  };
  for (const BadCase& c : kCases) {
    test::expectLog(c.message);
    EXPECT_EQ(parseTuningFilter(c.algo, c.proto).status().code(), ncclInvalidUsage) << c.algo << " | " << c.proto;
  }
}

TEST(TuningFilter, MatrixShowsOneRowPerFunctionThatFitsALine) {
  const auto lines = filterMatrix(parseTuningFilter("Ring;AllReduce:Tree", "^LL").value());
  ASSERT_EQ(lines.size(), 2u + kTunedFuncs);
  EXPECT_EQ(lines[0], "Enabled NCCL Func/Proto/Algo Matrix:");
  EXPECT_NE(lines[1].find("OneShot"), std::string::npos);
  EXPECT_EQ(lines[2].substr(0, 36), "    Broadcast |      0      2      1");
  for (const std::string& line : lines) EXPECT_LT(line.size(), 250u);
}

TEST(TuningFilter, LogNamesAreThoseOfTheLogsOfOld) {
  EXPECT_EQ(logName(device::Algorithm::CollNetDirect), "COLLNET_DIRECT");
  EXPECT_EQ(logName(device::Algorithm::NvlsTree), "NVLS_TREE");
  EXPECT_EQ(logName(device::Protocol::Simple), "SIMPLE");
}

}  // namespace
}  // namespace tutti::comm
