// From a kernel's words to what the network is asked for.
#include "transport/collnet/call.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "transport/collnet/collnet_words.h"

namespace tutti::test {
namespace {

using collnet::CallBounds;
using collnet::CallWords;
using collnet::StepCall;
using collnet::StepRange;

constexpr CallBounds kBounds{.nodes = 3, .areaBytes = 4096};

TEST(CollNetCall, SurvivesItsWord) {
  for (const CollNetFunc func : {CollNetFunc::AllReduce, CollNetFunc::AllGather, CollNetFunc::ReduceScatter}) {
    for (int type = 0; type < ncclNumTypes; ++type) {
      const StepCall call(wordsFor(func, 64, 0, 64, static_cast<ncclDataType_t>(type), ncclMin));
      EXPECT_EQ(call.func(), func);
      EXPECT_EQ(call.type(), static_cast<ncclDataType_t>(type));
      EXPECT_EQ(call.op(), ncclMin);
    }
  }
}

TEST(CollNetCall, HasItsWordsForSixteenSteps) {
  device::CollNetWords words{};
  for (std::uint64_t step = 0; step < 16; ++step) {
    *words.call.of(step) = step;
    *words.begin.of(step) = 100 + step;
    *words.bytes.of(step) = 200 + step;
    *words.perNode.of(step) = 300 + step;
  }
  for (std::uint64_t step = 0; step < 16; ++step) {
    const CallWords read = collnet::wordsOf(words, step);
    EXPECT_EQ(read.call, step);
    EXPECT_EQ(read.begin, 100 + step);
    EXPECT_EQ(read.bytes, 200 + step);
    EXPECT_EQ(read.perNode, 300 + step);
  }
}

TEST(CollNetCall, MakesSenseUpToItsBounds) {
  EXPECT_EQ(nonsenseIn(wordsFor(CollNetFunc::AllReduce, 4096), kBounds), "");
  EXPECT_EQ(nonsenseIn(wordsFor(CollNetFunc::AllGather, 3, 0, 1, ncclInt8), kBounds), "");
  EXPECT_EQ(nonsenseIn(wordsFor(CollNetFunc::AllGather, 4096, 3 * 8192 - 4096, 8192), kBounds), "");
  EXPECT_EQ(nonsenseIn(wordsFor(CollNetFunc::ReduceScatter, 8, 16, 8, ncclFloat64, ncclProd), kBounds), "");
  EXPECT_EQ(nonsenseIn({.call = ~0ULL, .begin = ~0ULL, .bytes = 0, .perNode = ~0ULL}, kBounds), "") << "no call at all";
  EXPECT_EQ(nonsenseIn(wordsFor(CollNetFunc::AllGather, 4, 0, 4, ncclInt8, ncclAvg), kBounds), "")
      << "a gather has no operation";
}

TEST(CollNetCall, IsNonsenseBeyondThem) {
  const auto expect = [](const CallWords& words, const std::string& part) {
    EXPECT_NE(nonsenseIn(words, kBounds).find(part), std::string::npos) << nonsenseIn(words, kBounds);
  };
  expect({.call = 0x30000, .bytes = 4}, "the call 0x30000, which is none");
  expect({.call = 0x1000000, .bytes = 4}, "which is none");
  expect(wordsFor(CollNetFunc::AllReduce, 4, 0, 0, ncclNumTypes), "which is none");
  expect(wordsFor(CollNetFunc::AllReduce, 4, 0, 0, ncclInt32, ncclAvg), "which is none");
  expect(wordsFor(CollNetFunc::AllReduce, 4100), "4100 bytes, where the slots of all lanes have 4096");
  expect(wordsFor(CollNetFunc::AllReduce, 6), "6 bytes, which are no whole elements");
  expect(wordsFor(CollNetFunc::AllGather, 4, 0, 0), "a window of 3 nodes' blocks of 0 bytes");
  expect(wordsFor(CollNetFunc::AllGather, 4, 0, UINT64_MAX / 2), "a window of 3 nodes' blocks of");
  expect(wordsFor(CollNetFunc::AllGather, 16, 24, 12),
         "a window of 16 bytes from 24 on, of 3 nodes' blocks of 12 bytes");
  expect(wordsFor(CollNetFunc::AllGather, 48, 0, 12), "a window of 48 bytes");
  expect(wordsFor(CollNetFunc::ReduceScatter, 4, UINT64_MAX - 3, 12), "a window of 4 bytes from");
  expect(wordsFor(CollNetFunc::ReduceScatter, 4, 2, 12), "no whole elements");
  expect(wordsFor(CollNetFunc::ReduceScatter, 4, 4, 6), "no whole elements");
}

TEST(CollNetCall, IsCutAtPagesOrElements) {
  const StepCall call(wordsFor(CollNetFunc::AllReduce, 20000, 0, 0, ncclFloat64));
  EXPECT_EQ(call.pieceAt(0, 1 << 20), (StepRange{0, 20000}));
  EXPECT_EQ(call.pieceAt(0, 20000), (StepRange{0, 16384}));
  EXPECT_EQ(call.pieceAt(16384, 20000), (StepRange{16384, 3616}));
  EXPECT_EQ(call.pieceAt(0, 4095), (StepRange{0, 4088}));
  EXPECT_EQ(call.pieceAt(0, 8), (StepRange{0, 8}));
  EXPECT_EQ(call.pieceAt(19992, 4095), (StepRange{19992, 8}));
}

TEST(CollNetCall, GivesEachNodeItsPartOfEveryPiece) {
  for (const std::uint64_t perNode : {4, 100, 5000}) {
    const std::uint64_t all = 3 * perNode;
    for (std::uint64_t begin = 0; begin < all; begin += perNode / 4 + 4) {
      const StepCall call(
          wordsFor(CollNetFunc::ReduceScatter, std::min<std::uint64_t>(all - begin, 4096), begin, perNode));
      std::vector<int> owners(call.bytes(), -1);
      for (std::uint64_t offset = 0; offset < call.bytes();) {
        const StepRange piece = call.pieceAt(offset, 40);
        for (std::uint64_t node = 0; node < 3; ++node) {
          const StepRange own = call.ownPart(piece, node);
          EXPECT_TRUE(own.bytes > 0 || own.offset == 0) << "an address that was registered";
          for (std::uint64_t i = 0; i < own.bytes; ++i) {
            EXPECT_GE(own.offset, piece.offset);
            owners.at(own.offset + i) = static_cast<int>(node);
          }
        }
        offset += piece.bytes;
      }
      for (std::uint64_t i = 0; i < call.bytes(); ++i) {
        EXPECT_EQ(owners[i], static_cast<int>((begin + i) / perNode));
      }
    }
  }
}

TEST(CollNetCall, SaysWhatANodeReceivesOfAStep) {
  EXPECT_EQ(StepCall(wordsFor(CollNetFunc::AllReduce, 64)).received(1), (StepRange{0, 64}));
  EXPECT_EQ(StepCall(wordsFor(CollNetFunc::AllGather, 64, 8, 32)).received(1), (StepRange{0, 64}));
  EXPECT_EQ(StepCall(wordsFor(CollNetFunc::ReduceScatter, 64, 8, 32)).received(1), (StepRange{24, 32}));
}

TEST(CollNetCall, IsNamedForPeople) {
  EXPECT_EQ(collnet::callText(wordsFor(CollNetFunc::AllReduce, 8, 0, 0, ncclBfloat16, ncclMax).call, 8),
            "AllReduce bfloat16 maximum of 8 bytes");
  EXPECT_EQ(collnet::callText(wordsFor(CollNetFunc::AllGather, 8).call, 8), "AllGather of 8 bytes");
  EXPECT_EQ(collnet::callText(0x070c09, 1), "function 7 type 12 operation 9 of 1 bytes");
}

}  // namespace
}  // namespace tutti::test
