// Kernels of programs.cu as nvcc compiles them, against the same on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>

#include "softgpu/ptx/cases.h"

namespace tutti::softgpu::test {
namespace {

using Values = std::vector<std::uint64_t>;

class PtxPrograms : public testing::Test {
 protected:
  void SetUp() override {
    const char* const path = std::getenv("SOFTGPU_PTX_PROGRAMS");
    if (path == nullptr) GTEST_SKIP() << "SOFTGPU_PTX_PROGRAMS names no file: nvcc was not there";
    std::ifstream file(path);
    text_ = std::string(std::istreambuf_iterator<char>(file), {});
    ASSERT_FALSE(text_.empty()) << path;
    program_ = std::make_unique<Program>(text_.data(), text_.size());
    ASSERT_NE(program_->get(), nullptr) << program_->why();
  }
  Values run(const std::string& name, const Shape& shape, const Words& inputs, std::size_t outputs,
             std::uint32_t count = 0) {
    return program_->run(name, shape, inputs, outputs, count);
  }

  std::string text_;
  std::unique_ptr<Program> program_;
};

/// 0, 1, 2 ... n - 1, after `function`.
template <typename F>
Words upTo(std::uint64_t n, F function) {
  Words words;
  for (std::uint64_t i = 0; i < n; ++i) words.push_back(Word(function(i)));
  return words;
}

std::uint64_t sumOf(const Words& words) {
  return std::accumulate(words.begin(), words.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Word& word) { return sum + word.bits; });
}

TEST_F(PtxPrograms, SumThroughSharedMemory) {
  const Words in = upTo(1000, [](std::uint64_t i) { return i * i + 1; });
  const Values out = run("sumShared", {{128, 1, 1}, {3, 1, 1}, 0}, in, 3, 1000);
  EXPECT_EQ(std::accumulate(out.begin(), out.end(), std::uint64_t{0}), sumOf(in));
}

TEST_F(PtxPrograms, SumThroughShuffles) {
  const Words in = upTo(1000, [](std::uint64_t i) { return i * 3 + 1; });
  const Values out = run("sumShuffle", {{96, 1, 1}, {2, 1, 1}, 0}, in, 2, 1000);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(std::bit_cast<double>(out[0]) + std::bit_cast<double>(out[1]), static_cast<double>(sumOf(in)) / 2);
}

TEST_F(PtxPrograms, Recursion) {
  EXPECT_EQ(run("recursion", {{4, 1, 1}, {1, 1, 1}, 0}, {0, 5, 1, 7, 2, 3, 2, 9}, 4), (Values{6, 9, 9, 21}));
}

TEST_F(PtxPrograms, VirtualFunctions) {
  EXPECT_EQ(run("virtualCalls", {{4, 1, 1}, {1, 1, 1}, 0}, {4, 5, 6, 7}, 4), (Values{16, 50, 36, 70}));
}

TEST_F(PtxPrograms, PrintOnceARun) {
  const simt::HostKernel* const kernel = program_->kernel("prints");
  ASSERT_NE(kernel, nullptr) << program_->why();
  testing::internal::CaptureStdout();
  run("prints", {{3, 1, 1}, {1, 1, 1}, 0}, {Word(std::uint64_t{1} << 40)}, 0);
  std::fflush(stdout);
  const std::string line = "thread 1 of prints: 1099511627776  2.50 x%\n";
  const bool ranTwice = kernel->entry != nullptr && kernel->wholeBlock != nullptr;
  EXPECT_EQ(testing::internal::GetCapturedStdout(), ranTwice ? line + line : line);
}

TEST_F(PtxPrograms, AssertionsThatFailAreTold) {
  run("asserts", {{2, 1, 1}, {1, 1, 1}, 0}, {1, 2}, 0);
  testing::internal::CaptureStderr();
  std::string said = program_->trapOf("asserts", {{2, 1, 1}, {1, 1, 1}, 0}, {1, 3});
  EXPECT_NE(said, "");
  std::fflush(stderr);
  said += testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("in[threadIdx.x] != 3"), std::string::npos) << said;
}

TEST_F(PtxPrograms, TrapsEndTheKernel) {
  run("traps", {{2, 1, 1}, {1, 1, 1}, 0}, {1, 2}, 0);
  EXPECT_NE(program_->trapOf("traps", {{2, 1, 1}, {1, 1, 1}, 0}, {1, 3}), "");
}

TEST_F(PtxPrograms, MemoryOfTheHeapIsEachThreadsOwn) {
  const Values out = run("allocates", {{40, 1, 1}, {1, 1, 1}, 0}, {}, 40);
  ASSERT_EQ(out.size(), 40u);
  for (std::uint64_t i = 0; i < 40; ++i) EXPECT_EQ(out[i], i * 6400 + 64 * 63 / 2) << i;
}

TEST_F(PtxPrograms, TilesOfCooperativeGroups) {
  const Words in = upTo(64, [](std::uint64_t i) { return i * i; });
  const Values out = run("tiles", {{64, 1, 1}, {1, 1, 1}, 0}, in, 64);
  ASSERT_EQ(out.size(), 64u);
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint64_t sum = 0;
    for (std::size_t j = i / 8 * 8; j < i / 8 * 8 + 8; ++j) sum += j * j;
    EXPECT_EQ(out[i], sum * 100 + i % 8 / 4 * 10 + i % 4 + (i % 3 == 0 ? 1000000 : 0)) << i;
  }
}

TEST_F(PtxPrograms, CubReducesABlock) {
  const Words in = upTo(256, [](std::uint64_t i) { return i * 5 + 1; });
  const Values out = run("cubReduce", {{128, 1, 1}, {2, 1, 1}, 0}, in, 2);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0], 128u * 127 / 2 * 5 + 128);
  EXPECT_EQ(out[0] + out[1], sumOf(in));
}

TEST_F(PtxPrograms, CubScansABlock) {
  const Words in = upTo(96, [](std::uint64_t i) { return i % 7 + 1; });
  const Values out = run("cubScan", {{96, 1, 1}, {1, 1, 1}, 0}, in, 96);
  ASSERT_EQ(out.size(), 96u);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < 96; ++i) {
    EXPECT_EQ(out[i], before * 1000000 + sumOf(in)) << i;
    before += in[i].bits;
  }
}

TEST_F(PtxPrograms, Mathematics) {
  const Words in = upTo(16, [](std::uint64_t i) { return i; });
  const Values out = run("mathematics", {{16, 1, 1}, {1, 1, 1}, 0}, in, 160);
  ASSERT_EQ(out.size(), 160u);
  for (std::size_t i = 0; i < 16; ++i) {
    const double x = static_cast<double>(i) / 7 + 0.1;
    const float f = static_cast<float>(x);
    const double inHalf = decode(kHalf, half(decode(kHalf, half(f)) * 0.5));
    const double expected[] = {std::sin(x), std::exp(-x), std::pow(x, 1.7), std::log(x),      std::sqrt(x),
                               std::sin(f), std::exp(-f), std::tanh(f),     double{f / 3.0f}, inHalf};
    for (std::size_t j = 0; j < 10; ++j)
      EXPECT_NEAR(std::bit_cast<double>(out[10 * i + j]), expected[j], j < 5 ? 1e-14 : 1e-6) << i << " " << j;
  }
}

TEST_F(PtxPrograms, TheLastBlockSumsWhatAllCounted) {
  const Words in = upTo(160, [](std::uint64_t i) { return i * 7 % 31; });
  const Values out = run("lastBlockSums", {{32, 1, 1}, {5, 1, 1}, 0}, in, 16);
  ASSERT_EQ(out.size(), 16u);
  const std::uint64_t weights[] = {1, 10, 100, 1000};
  std::uint64_t expected[16] = {};
  for (const Word& word : in) expected[word.bits % 16] += weights[word.bits % 4];
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(out[i] & 0xffffffff, expected[i]) << i;
}

TEST_F(PtxPrograms, Switches) {
  const Words in = upTo(9, [](std::uint64_t i) { return i; });
  EXPECT_EQ(run("switches", {{9, 1, 1}, {1, 1, 1}, 0}, in, 9),
            (Values{5, 10, 7, 9, std::uint64_t{4} << 40, 2 + 29, 0x60000000, ~std::uint64_t{7}, ~std::uint64_t{8}}));
}

TEST_F(PtxPrograms, BarriersOfTheLibraryHandWordsOn) {
  const Words in = upTo(10, [](std::uint64_t i) { return 3 * i + 1; });
  const Values out = run("pingPong", {{70, 1, 1}, {1, 1, 1}, 0}, in, 70);
  ASSERT_EQ(out.size(), 70u);
  for (std::uint64_t i = 0; i < 70; ++i) EXPECT_EQ(out[i], sumOf(in) * (i + 1)) << i;
}

TEST_F(PtxPrograms, PipelinesOverlapCopies) {
  const Words in = upTo(5 * 64, [](std::uint64_t i) { return i + 1; });
  const Values out = run("pipelined", {{64, 1, 1}, {1, 1, 1}, 0}, in, 64, 5 * 64);
  ASSERT_EQ(out.size(), 64u);
  for (std::uint64_t i = 0; i < 64; ++i) {
    std::uint64_t sum = 0;
    for (std::uint64_t part = 0; part < 5; ++part) sum += (part * 64 + i + 1) * (part + 1);
    EXPECT_EQ(out[i], sum) << i;
  }
}

TEST_F(PtxPrograms, BulkCopiesArriveBeforeTheirBarrier) {
  const Words in = upTo(128, [](std::uint64_t i) { return i * i; });
  const Values out = run("fetchesInBulk", {{128, 1, 1}, {1, 1, 1}, 0}, in, 128, 128);
  ASSERT_EQ(out.size(), 128u);
  for (std::uint64_t i = 0; i < 128; ++i) EXPECT_EQ(out[i], (i + 1) % 128 * ((i + 1) % 128)) << i;
}

}  // namespace
}  // namespace tutti::softgpu::test
