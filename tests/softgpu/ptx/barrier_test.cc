// Barriers of a block: whole, by number and count, arriving without waiting, and counting votes.
#include <gtest/gtest.h>

#include <string>

#include "softgpu/ptx/run.h"

namespace tutti::softgpu::test {
namespace {

const std::string kCells = ".shared .align 4 .b32 cells[256];\n";

/// %t7 becomes the address of the thread's cell.
const std::string kMyCell = "mov.u32 %t7, cells;\nmad.lo.u32 %t7, %index, 4, %t7;\n";

/// Writes a cell, meets the others by `barrier`, and reads the cell of the next thread.
std::vector<Lane> passOn(const std::string& barrier) {
  return runLanes(kMyCell + "mul.lo.u32 %t0, %index, 7;\nst.shared.u32 [%t7], %t0;\n" + barrier + "\n" +
                      "add.u32 %t1, %index, 1;\nmov.u32 %t2, %ntid.x;\nrem.u32 %t1, %t1, %t2;\nmov.u32 %t7, cells;\n"
                      "mad.lo.u32 %t7, %t1, 4, %t7;\nld.shared.u32 %r, [%t7];\n",
                  96, kCells);
}

TEST(PtxBarrier, OfTheWholeBlockPassesStoresOn) {
  for (const char* const barrier : {"bar.sync 0;", "barrier.sync 0;", "bar.sync 0, 96;", "barrier.sync 5;",
                                    "barrier.sync.aligned 3, 96;", "mov.u32 %t3, 2; bar.sync %t3;",
                                    "mov.u32 %t3, 2; mov.u32 %t4, 96; barrier.sync %t3, %t4;", "bar.cta.sync 1;"}) {
    const auto lanes = passOn(barrier);
    ASSERT_EQ(lanes.size(), 96u) << barrier;
    for (std::uint32_t i = 0; i < 96; ++i) ASSERT_EQ(lanes[i].r, (i + 1) % 96 * 7) << barrier << " " << i;
  }
}

TEST(PtxBarrier, OfSomeWarpsNeedsOnlyThese) {
  const auto lanes = runLanes(kMyCell + R"(
st.shared.u32 [%t7], %index;
setp.ge.u32 %p, %index, 64;
@%p bra DONE;
bar.sync 4, 64;
xor.b32 %t0, %index, 32;
mov.u32 %t7, cells;
mad.lo.u32 %t7, %t0, 4, %t7;
ld.shared.u32 %r, [%t7];
DONE:
)",
                              128, kCells);
  ASSERT_EQ(lanes.size(), 128u);
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(lanes[i].r, i < 64 ? i ^ 32 : 0u) << i;
}

TEST(PtxBarrier, WhoOnlyArrivesGoesOn) {
  const auto lanes = runLanes(kMyCell + R"(
setp.lt.u32 %p, %index, 32;
@%p bra CONSUMER;
add.u32 %t0, %index, 1000;
st.shared.u32 [%t7], %t0;
bar.arrive 1, 64;
bar.sync 2, 64;
ld.shared.u32 %r, [%t7+-128];
bra.uni DONE;
CONSUMER:
bar.sync 1, 64;
ld.shared.u32 %r, [%t7+128];
st.shared.u32 [%t7], %r;
barrier.arrive 2, 64;
DONE:
)",
                              64, kCells);
  ASSERT_EQ(lanes.size(), 64u);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(lanes[i].r, 1000 + i % 32 + 32) << i;
}

TEST(PtxBarrier, CountsAndCombinesPredicates) {
  const auto lanes = runLanes(R"(
.reg .pred %third, %few;
rem.u32 %t0, %index, 3;
setp.eq.u32 %third, %t0, 0;
setp.lt.u32 %few, %index, 200;
bar.red.popc.u32 %r, 0, %third;
bar.red.popc.u32 %t1, 0, !%third;
add.u32 %r, %r, %t1;
barrier.red.popc.u32 %t1, 1, 96, %third;
shl.b32 %t1, %t1, 16;
or.b32 %r, %r, %t1;
bar.red.and.pred %p, 0, %third;
@%p or.b32 %s, %s, 1;
bar.red.or.pred %p, 0, %third;
@%p or.b32 %s, %s, 2;
bar.red.and.pred %p, 0, %few;
@%p or.b32 %s, %s, 4;
bar.red.or.pred %p, 2, 96, !%few;
@%p or.b32 %s, %s, 8;
)",
                              96);
  ASSERT_EQ(lanes.size(), 96u);
  for (const Lane& lane : lanes) EXPECT_EQ(lane, (Lane{96 | 32 << 16, 6}));
}

TEST(PtxBarrier, MayBeMetInALoop) {
  const auto lanes = runLanes(kMyCell + R"(
st.shared.u32 [%t7], 1;
mov.u32 %t0, 1;
SCAN:
bar.sync 0;
mov.u32 %t1, 0;
setp.ge.u32 %p, %index, %t0;
@%p mul.lo.u32 %t2, %t0, 4;
@%p sub.u32 %t2, %t7, %t2;
@%p ld.shared.u32 %t1, [%t2];
bar.sync 0;
ld.shared.u32 %t3, [%t7];
add.u32 %t3, %t3, %t1;
st.shared.u32 [%t7], %t3;
shl.b32 %t0, %t0, 1;
setp.lt.u32 %q, %t0, 128;
@%q bra SCAN;
ld.shared.u32 %r, [%t7];
)",
                              128, kCells);
  ASSERT_EQ(lanes.size(), 128u);
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(lanes[i].r, i + 1) << i;
}

TEST(PtxBarrier, ThreadsThatEndedAreNotWaitedFor) {
  const auto lanes = runLanes(
      "st.global.v2.u32 [%mine], {0, 0};\nsetp.ge.u32 %p, %index, 32;\n@%p ret;\nbar.sync 0;\n"
      "mov.u32 %r, 9;\n",
      64);
  ASSERT_EQ(lanes.size(), 64u);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(lanes[i].r, i < 32 ? 9u : 0u) << i;
}

TEST(PtxBarrier, OfAWarpPassesStoresOn) {
  const auto lanes = runLanes(kMyCell + R"(
st.shared.u32 [%t7], %index;
bar.warp.sync 0xffffffff;
xor.b32 %t0, %index, 5;
mov.u32 %t7, cells;
mad.lo.u32 %t7, %t0, 4, %t7;
ld.shared.u32 %r, [%t7];
)",
                              64, kCells);
  ASSERT_EQ(lanes.size(), 64u);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(lanes[i].r, i ^ 5) << i;
}

}  // namespace
}  // namespace tutti::softgpu::test
