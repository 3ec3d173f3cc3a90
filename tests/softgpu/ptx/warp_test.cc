// Lanes of a warp that exchange values, also where they have gone different ways.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>

#include "softgpu/ptx/cases.h"

namespace tutti::softgpu::test {
namespace {

constexpr std::uint32_t kAll = 0xffffffffu;

/// What the ISA says of a shuffle: the source lane, and whether it lies in the segment.
Lane shuffled(const std::string& mode, std::uint32_t lane, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t distance = b & 31, clamp = c & 31, segment = c >> 8 & 31;
  const std::uint32_t most = (lane & segment) | (clamp & ~segment & 31), least = lane & segment;
  std::int32_t source = 0;
  bool inside = false;
  if (mode == "up") {
    source = static_cast<std::int32_t>(lane - distance);
    inside = source >= static_cast<std::int32_t>(most);
  } else {
    source = static_cast<std::int32_t>(mode == "down"   ? lane + distance
                                       : mode == "bfly" ? lane ^ distance
                                                        : least | (distance & ~segment));
    inside = source <= static_cast<std::int32_t>(most);
  }
  return {100 + (inside ? static_cast<std::uint32_t>(source) : lane), inside ? 1u : 0u};
}

TEST(PtxWarp, ShufflesStayInTheirSegment) {
  std::vector<Instruction> table;
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    for (const std::uint32_t c : mode == "up" ? std::vector<std::uint32_t>{0, 0x1800, 0x1000, 0x1e00, 0x5}
                                              : std::vector<std::uint32_t>{31, 0x181f, 0x101f, 0x1e1f, 0x5}) {
      for (const std::uint32_t b : {0u, 1u, 5u, 16u, 31u, 33u}) {
        std::vector<Case> cases;  // of a warp
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
          const Lane expected = shuffled(mode, lane, b, c);
          cases.push_back({100 + lane, {expected.r, expected.s}});
        }
        table.push_back(
            {"shfl.sync." + mode + ".b32 %d|%e, %a, " + std::to_string(b) + ", " + std::to_string(c) + ", 0xffffffff;",
             "b32 pred = b32", cases});
      }
    }
  }
  expectResults(table);
}

TEST(PtxWarp, EachLaneMayNameAnotherSource) {
  const auto lanes = runLanes(
      "sub.u32 %t1, 31, %index;\nadd.u32 %t0, %index, 100;\n"
      "shfl.sync.idx.b32 %r, %t0, %t1, 31, -1;\n",
      32);
  ASSERT_EQ(lanes.size(), 32u);
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(lanes[lane].r, 131 - lane);
}

TEST(PtxWarp, EveryWarpIsByItself) {
  const auto lanes = runLanes(
      "shfl.sync.idx.b32 %r, %index, 3, 31, -1;\n"
      "setp.eq.u32 %p, %index, 37;\nvote.sync.any.pred %q, %p, -1;\nselp.u32 %s, 1, 0, %q;",
      96);
  ASSERT_EQ(lanes.size(), 96u);
  for (std::uint32_t i = 0; i < 96; ++i) EXPECT_EQ(lanes[i], (Lane{i / 32 * 32 + 3, i / 32 == 1 ? 1u : 0u})) << i;
}

TEST(PtxWarp, HalvesThatWentDifferentWaysShuffleByThemselves) {
  const auto lanes = runLanes(R"(
setp.lt.u32 %p, %index, 16;
@%p bra LOW;
shfl.sync.down.b32 %r, %index, 1, 31, 0xffff0000;
shfl.sync.idx.b32 %s, %index, 20, 31, 0xffff0000;
bra.uni JOIN;
LOW:
shfl.sync.idx.b32 %s, %index, 7, 31, 0x0000ffff;
shfl.sync.bfly.b32 %r, %index, 1, 31, 0x0000ffff;
shfl.sync.bfly.b32 %r, %r, 2, 31, 0x0000ffff;
JOIN:
bar.warp.sync -1;
shfl.sync.idx.b32 %t0, %r, 0, 31, -1;
add.u32 %r, %r, %t0;
)",
                              32);
  ASSERT_EQ(lanes.size(), 32u);
  for (std::uint32_t i = 0; i < 32; ++i) {
    const std::uint32_t own = i < 16 ? i ^ 3 : std::min(i + 1, 31u);
    EXPECT_EQ(lanes[i], (Lane{own + 3, i < 16 ? 7u : 20u})) << i;
  }
}

TEST(PtxWarp, LanesThatLeftAreNotWaitedFor) {
  const auto lanes = runLanes(
      "setp.ge.u32 %p, %index, 8;\n@%p st.global.v2.u32 [%mine], {77, 78};\n@%p exit;\n"
      "vote.sync.ballot.b32 %r, 1, 0xff;\nshfl.sync.idx.b32 %s, %index, 5, 31, 0xff;\n"
      "bar.warp.sync 0xff;\n",
      32);
  ASSERT_EQ(lanes.size(), 32u);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(lanes[i], (i < 8 ? Lane{0xff, 5} : Lane{77, 78})) << i;
}

TEST(PtxWarp, VotesCountTheLanesOfTheMask) {
  const auto lanes = runLanes(R"(
.reg .pred %all, %any, %uni, %odd;
and.b32 %t0, %index, 1;
setp.eq.u32 %odd, %t0, 1;
vote.sync.ballot.b32 %r, %odd, -1;
vote.sync.ballot.b32 %t1, !%odd, -1;
xor.b32 %r, %r, %t1;
setp.lt.u32 %p, %index, 40;
vote.sync.all.pred %all, %p, -1;
vote.sync.any.pred %any, !%p, -1;
vote.sync.uni.pred %uni, %odd, -1;
selp.u32 %s, 1, 0, %all;
@%any or.b32 %s, %s, 2;
@%uni or.b32 %s, %s, 4;
vote.sync.uni.pred %uni, %p, -1;
@%uni or.b32 %s, %s, 8;
@%odd bra DONE;
vote.sync.all.pred %all, !%odd, 0x55555555;
@%all or.b32 %s, %s, 16;
DONE:
)",
                              32);
  ASSERT_EQ(lanes.size(), 32u);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(lanes[i], (Lane{kAll, 1u + 8u + (i % 2 == 0 ? 16u : 0u)})) << i;
}

TEST(PtxWarp, MatchFindsWhoHasTheSame) {
  const auto lanes = runLanes(R"(
shr.u32 %t0, %index, 3;
match.any.sync.b32 %r, %t0, -1;
cvt.u64.u32 %l0, %t0;
shl.b64 %l0, %l0, 40;
match.any.sync.b64 %t1, %l0, -1;
xor.b32 %t1, %t1, %r;
match.all.sync.b32 %t2|%p, %t0, -1;
add.u32 %t1, %t1, %t2;
@%p add.u32 %t1, %t1, 100;
match.all.sync.b32 %t2|%p, 7, -1;
selp.u32 %t3, 1, 0, %p;
add.u32 %s, %t1, %t3;
setp.ne.u32 %q, %t2, 0xffffffff;
@%q add.u32 %s, %s, 1000;
)",
                              32);
  ASSERT_EQ(lanes.size(), 32u);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(lanes[i], (Lane{0xffu << i / 8 * 8, 1u})) << i;
}

TEST(PtxWarp, ReductionsOfTheMask) {
  const auto lanes = runLanes(R"(
sub.u32 %t0, %index, 10;
redux.sync.add.s32 %r, %t0, -1;
redux.sync.min.s32 %t1, %t0, -1;
add.u32 %s, %s, %t1;
redux.sync.max.s32 %t1, %t0, -1;
add.u32 %s, %s, %t1;
redux.sync.max.u32 %t1, %t0, -1;
setp.ne.u32 %p, %t1, 0xffffffff;
@%p add.u32 %s, %s, 1000;
redux.sync.min.u32 %t1, %t0, -1;
@%p add.u32 %s, %s, %t1;
redux.sync.or.b32 %t1, %index, -1;
add.u32 %s, %s, %t1;
redux.sync.and.b32 %t1, %index, -1;
add.u32 %s, %s, %t1;
redux.sync.xor.b32 %t1, %index, -1;
add.u32 %s, %s, %t1;
setp.lt.u32 %q, %index, 4;
@!%q bra DONE;
redux.sync.add.u32 %t1, %index, 0xf;
add.u32 %s, %s, %t1;
DONE:
)",
                              32);
  ASSERT_EQ(lanes.size(), 32u);
  // 496 - 320; then -10 + 21 + 31 + 0 + 0, and 0 + 1 + 2 + 3 for four of them.
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(lanes[i], (Lane{176, 42u + (i < 4 ? 6u : 0u)})) << i;
}

TEST(PtxWarp, OneIsElectedOfTheMask) {
  const auto lanes = runLanes(
      "elect.sync %r|%p, -1;\nselp.u32 %s, 1, 0, %p;\nsetp.lt.u32 %q, %index, 16;\n@%q bra DONE;\n"
      "elect.sync %t0|%p, 0xffff0000;\n@%p add.u32 %s, %s, 2;\nDONE:\n",
      32);
  ASSERT_EQ(lanes.size(), 32u);
  std::uint32_t ofAll = 0, ofUpper = 0;
  for (std::uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(lanes[i].r, lanes[0].r) << "all know who it is";
    EXPECT_EQ(lanes[i].s & 1, i == lanes[0].r ? 1u : 0u) << i;
    ofAll += lanes[i].s & 1;
    ofUpper += lanes[i].s >> 1;
  }
  EXPECT_EQ(ofAll, 1u);
  EXPECT_EQ(ofUpper, 1u);
}

TEST(PtxWarp, TheActiveMaskHoldsTheLaneItself) {
  const auto lanes = runLanes("activemask.b32 %r;\n", 40);
  ASSERT_EQ(lanes.size(), 40u);
  for (std::uint32_t i = 0; i < 40; ++i) {
    EXPECT_NE(lanes[i].r >> i % 32 & 1, 0u) << i;
    EXPECT_EQ(lanes[i].r & ~(i < 32 ? 0xffffffffu : 0xffu), 0u) << "there are eight lanes in the second warp";
  }
}

TEST(PtxWarp, ALoopOfShufflesSumsUp) {
  const auto lanes = runLanes(R"(
mad.lo.u32 %r, %index, %index, 1;
mov.u32 %t0, 16;
AGAIN:
shfl.sync.bfly.b32 %t1, %r, %t0, 31, -1;
add.u32 %r, %r, %t1;
shr.u32 %t0, %t0, 1;
setp.ne.u32 %p, %t0, 0;
@%p bra AGAIN;
)",
                              64);
  ASSERT_EQ(lanes.size(), 64u);
  std::uint32_t sums[2] = {};
  for (std::uint32_t i = 0; i < 64; ++i) sums[i / 32] += i * i + 1;
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(lanes[i].r, sums[i / 32]) << i;
}

}  // namespace
}  // namespace tutti::softgpu::test
