// What programs that must be repeatable count on: the bits of sums of floats, whose order of additions matters.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>

#include "comm/world.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;
using test::withComm;

constexpr int kRanks = 4;
constexpr std::size_t kCount = 40'003;  // several slots, and no multiple of anything

/// Floats of all sizes between 2^-20 and 2^20, as bits: each order of additions gives another sum.
std::vector<int> floatsOf(int rank) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::uniform_real_distribution<float> mantissa(-2, 2);
  std::uniform_int_distribution<int> exponent(-20, 20);
  std::vector<int> bits(kCount);
  for (int& word : bits) word = std::bit_cast<int>(std::ldexp(mantissa(random), exponent(random)));
  return bits;
}

/// The sum of all ranks' vectors, in calls of at most `piece` elements, from and to addresses of its own.
std::vector<int> sumInPieces(const Member& m, std::size_t piece) {
  const Ints in(m.gpu, floatsOf(m.rank));
  const Ints out(m.gpu, kCount, -1);
  for (std::size_t at = 0; at < kCount; at += piece) {
    const std::size_t count = std::min(piece, kCount - at);
    EXPECT_EQ(ncclAllReduce(in.at(at), out.at(at), count, ncclFloat32, ncclSum, m.comm, m.stream()), ncclSuccess);
  }
  m.sync();
  return out.read();
}

/// NCCL_ALGO for the communicators that are made while it lives.
class Algorithm {
 public:
  explicit Algorithm(const char* name) { ::setenv("NCCL_ALGO", name, 1); }
  Algorithm(const Algorithm&) = delete;
  ~Algorithm() { ::unsetenv("NCCL_ALGO"); }
};

TEST(WorldBits, AreTheSameInEveryRunOfEveryAlgorithm) {
  for (const char* name : {"Ring", "Tree", "OneShot", "Direct"}) {
    const Algorithm algorithm(name);
    std::vector<std::vector<int>> first(kRanks);
    for (int run = 0; run < 3; ++run) {
      withComm(kRanks, [&](Member& m) {
        std::vector<int>& before = first[static_cast<std::size_t>(m.rank)];
        const Ints elsewhere(m.gpu, 1000 * static_cast<std::size_t>(run + 1), 0);
        for (int call = 0; call < 3; ++call) {
          const std::vector<int> sum = sumInPieces(m, kCount);
          if (before.empty()) before = sum;
          EXPECT_EQ(sum, before) << name << " on rank " << m.rank << " in run " << run << ", call " << call;
        }
      });
    }
    for (const std::vector<int>& ofOneRank : first) EXPECT_EQ(ofOneRank, first.front()) << name;
  }
}

TEST(WorldBits, OfDirectAlgorithmsDoNotDependOnHowAVectorIsCut) {
  std::vector<int> expected(kCount);
  std::vector<std::vector<int>> inputs;
  for (int rank = 0; rank < kRanks; ++rank) inputs.push_back(floatsOf(rank));
  for (std::size_t i = 0; i < kCount; ++i) {
    float sum = std::bit_cast<float>(inputs[0][i]);
    for (int rank = 1; rank < kRanks; ++rank) sum += std::bit_cast<float>(inputs[static_cast<std::size_t>(rank)][i]);
    expected[i] = std::bit_cast<int>(sum);
  }
  for (const char* name : {"OneShot", "Direct", "AllReduce:OneShot,Direct;ReduceScatter:Direct"}) {
    const Algorithm algorithm(name);
    withComm(kRanks, [&](Member& m) {
      for (const std::size_t piece : {kCount, std::size_t{17'001}, std::size_t{2'503}}) {
        EXPECT_EQ(sumInPieces(m, piece), expected) << name << ", in pieces of " << piece;
      }
    });
  }
}

}  // namespace
}  // namespace tutti::comm
