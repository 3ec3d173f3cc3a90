#include "device/collnet_cut.h"

#include <gtest/gtest.h>

#include <vector>

namespace tutti::device {
namespace {

TEST(CollNetCut, PiecesOfAllTurnsCoverEveryElementOnceAndInOrder) {
  for (const std::uint64_t total : {0, 1, 127, 128, 129, 1000, 100003}) {
    for (const std::uint32_t heads : {1u, 2u, 8u}) {
      for (const std::uint32_t lanes : {1u, 3u, 16u}) {
        const CollNetCut cut{total, 128, heads, lanes};
        std::uint64_t next = 0;
        for (std::uint64_t turn = 0; turn < cut.turns(); ++turn) {
          EXPECT_LT(next, total) << "a turn without anything to do";
          for (unsigned head = 0; head < heads; ++head) {
            EXPECT_EQ(cut.window(turn, head, 0, lanes).begin, next);
            for (unsigned lane = 0; lane < lanes; ++lane) {
              const Part piece = cut.piece(turn, head, lane);
              ASSERT_EQ(piece.begin, next);
              ASSERT_TRUE(piece.count == 128 || piece.end() == total) << "lanes of a step lie in a row";
              next = piece.end();
            }
            EXPECT_EQ(cut.window(turn, head, 0, lanes).end(), next);
          }
        }
        EXPECT_EQ(next, total);
      }
    }
  }
}

TEST(CollNetCut, HeadsThatHaveSomethingAreTheFirstOnes) {
  const CollNetCut cut{5 * 128 + 1, 128, 2, 2};  // six pieces: four, then two
  EXPECT_EQ(cut.busyHeads(0, 0, 2), 2u);
  EXPECT_EQ(cut.busyHeads(0, 1, 2), 2u);
  EXPECT_EQ(cut.busyHeads(1, 0, 2), 1u);
  EXPECT_EQ(cut.busyHeads(1, 1, 2), 1u);
  const CollNetCut rails{128, 128, 1, 2};
  EXPECT_EQ(rails.busyHeads(0, 0, 8), 8u) << "every rail has a vector of its own";
  EXPECT_EQ(rails.busyHeads(0, 1, 8), 0u);
}

TEST(CollNetCut, OfTheLargestSizesEndsWithThem) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
  const CollNetCut cut{kMost - 1, 512, 8, 64};
  const std::uint64_t last = cut.turns() - 1;
  EXPECT_EQ(cut.window(last, 7, 0, 64).end(), kMost - 1);
  EXPECT_EQ(cut.piece(last, 7, 63).count, 511u);
}

TEST(CollNetCut, BlocksOfNodesShareAPiece) {
  const Part piece{90, 50};
  const std::uint64_t block = 40;
  EXPECT_EQ(partInBlock(piece, block, 1).count, 0u);
  EXPECT_EQ(partInBlock(piece, block, 2).begin, 90u);
  EXPECT_EQ(partInBlock(piece, block, 2).count, 30u);
  EXPECT_EQ(partInBlock(piece, block, 3).begin, 120u);
  EXPECT_EQ(partInBlock(piece, block, 3).count, 20u);
  EXPECT_EQ(partInBlock(piece, block, 4).count, 0u);
}

TEST(CollNetCut, NetworksAreToldOfSumsWhereRanksScaleThem) {
  CollWork work{};
  work.type = 7;
  for (const DevOp op : {DevOp::Sum, DevOp::PreMulSum, DevOp::SumPostDiv}) {
    work.op = op;
    const CollNetCall call = CollNetCall::of(networkCall(Func::ReduceScatter, work).word());
    EXPECT_EQ(call.func, CollNetFunc::ReduceScatter);
    EXPECT_EQ(call.type, 7);
    EXPECT_EQ(call.op, 0);
  }
  work.op = DevOp::Min;
  EXPECT_EQ(networkCall(Func::AllReduce, work).op, 3);
}

TEST(CollNetCrews, HaveWholeWarpsOrAThreadEachAndNobodyTwice) {
  const CollNetShares all[] = {chainShares(),
                               directShares(Func::AllReduce, true, true),
                               directShares(Func::AllReduce, true, false),
                               directShares(Func::AllReduce, false, true),
                               directShares(Func::AllGather, true, true),
                               directShares(Func::ReduceScatter, true, true),
                               directShares(Func::ReduceScatter, true, false)};
  for (const CollNetShares& shares : all) {
    for (const unsigned threads : {4u, 32u, 96u, 128u, 160u, 224u, 512u}) {
      std::vector<unsigned> seen(kCollNetRoles), size(kCollNetRoles);
      unsigned crews = 0;
      for (const unsigned share : shares.of) crews += share > 0 ? 1 : 0;
      for (unsigned t = 0; t < threads; ++t) {
        const CollNetPlace place = collNetPlace(shares, t, threads);
        if (place.role == CollNetRole::None) continue;
        const auto role = static_cast<unsigned>(place.role);
        ASSERT_GT(shares.of[role], 0u);
        ASSERT_EQ(place.rank, seen[role]++) << "threads of a crew are in a row";
        size[role] = place.size;
        if (threads >= crews * 32) {
          ASSERT_EQ(place.size % 32, 0u) << "named barriers count whole warps";
          ASSERT_EQ((t - place.rank) % 32, 0u);
        } else {
          ASSERT_EQ(place.size, 1u);
        }
      }
      for (unsigned role = 0; role < kCollNetRoles; ++role) {
        EXPECT_EQ(seen[role], size[role]);
        EXPECT_EQ(seen[role] > 0, shares.of[role] > 0) << "every crew has somebody";
      }
    }
  }
}

}  // namespace
}  // namespace tutti::device
