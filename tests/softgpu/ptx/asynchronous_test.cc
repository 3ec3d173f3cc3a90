// Barriers in memory (mbarrier), and copies that tell them of their end.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "softgpu/ptx/run.h"

namespace tutti::softgpu::test {
namespace {

const std::string kShared =
    ".shared .align 8 .b64 barrier;\n.shared .align 16 .b32 words[64];\n"
    ".global .align 16 .b32 given[64] = {1, 2, 3, 4, 5, 6, 7, 8};\n"
    ".global .align 16 .b32 taken[64];\n";

/// Thread 0 initialises the barrier for so many arrivals; all others see it.
std::string initialised(unsigned count) {
  return "setp.eq.u32 %p, %index, 0;\n@%p mbarrier.init.shared::cta.b64 [barrier], " + std::to_string(count) +
         ";\nbar.sync 0;\n";
}

const std::string kWaitForState = "AGAIN:\nmbarrier.test_wait.shared::cta.b64 %q, [barrier], %l0;\n@!%q bra AGAIN;\n";

TEST(PtxMbarrier, WaitsUntilAllHaveArrived) {
  const auto lanes =
      runLanes(".reg .u32 %a;\nmov.u32 %a, words;\nmad.lo.u32 %a, %index, 4, %a;\n" + initialised(64) +
                   "st.shared.u32 [%a], %index;\nmbarrier.arrive.shared::cta.b64 %l0, [barrier];\n" + kWaitForState +
                   "xor.b32 %t0, %index, 63;\nmov.u32 %a, words;\nmad.lo.u32 %a, %t0, 4, %a;\n"
                   "ld.shared.u32 %r, [%a];\n",
               64, kShared);
  ASSERT_EQ(lanes.size(), 64u);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(lanes[i].r, 63 - i);
}

TEST(PtxMbarrier, PhasesFollowOneAnotherByTheirParity) {
  // Thread 0 counts up in every second phase, and all see the same count behind it.
  const auto lanes = runLanes(initialised(33) + R"(
mov.u32 %t0, 0;
ROUND:
and.b32 %t1, %t0, 1;
setp.eq.u32 %p, %index, 0;
@%p st.shared.u32 [words], %t0;
mbarrier.arrive.release.cta.shared::cta.b64 _, [barrier];
LOOK:
mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %q, [barrier], %t1, 1000;
@!%q bra LOOK;
ld.shared.u32 %t2, [words];
add.u32 %r, %r, %t2;
add.u32 %t0, %t0, 1;
and.b32 %t1, %t0, 1;
mbarrier.arrive.shared.b64 _, [barrier], 1;
LOOKS:
mbarrier.try_wait.parity.shared.b64 %q, [barrier], %t1;
@!%q bra LOOKS;
add.u32 %t0, %t0, 1;
setp.lt.u32 %p, %t0, 8;
@%p bra ROUND;
)",
                              33, kShared);
  ASSERT_EQ(lanes.size(), 33u);
  for (const Lane& lane : lanes) EXPECT_EQ(lane.r, 0u + 2 + 4 + 6);
}

TEST(PtxMbarrier, ParityOfTheLatestPhaseIsDoneAndThatOfTheNextIsNot) {
  const auto lanes = runLanes(initialised(1) + R"(
mbarrier.test_wait.parity.shared.b64 %p, [barrier], 1;
selp.u32 %r, 1, 0, %p;
mbarrier.test_wait.parity.shared.b64 %p, [barrier], 0;
selp.u32 %t0, 2, 0, %p;
or.b32 %r, %r, %t0;
mbarrier.arrive.shared.b64 %l0, [barrier];
mbarrier.test_wait.parity.shared.b64 %p, [barrier], 0;
selp.u32 %s, 1, 0, %p;
mbarrier.test_wait.shared.b64 %p, [barrier], %l0;
selp.u32 %t0, 2, 0, %p;
or.b32 %s, %s, %t0;
)",
                              1, kShared);
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0], (Lane{1, 3}));
}

TEST(PtxMbarrier, StatesTellWhoIsMissing) {
  const auto lanes = runLanes(initialised(10) + R"(
mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %l0, [barrier], 4;
mbarrier.pending_count.b64 %r, %l0;
mbarrier.arrive.shared.b64 %l1, [barrier], 5;
mbarrier.pending_count.b64 %s, %l1;
)",
                              1, kShared);
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0], (Lane{10, 6}));
}

TEST(PtxMbarrier, WhoDropsOutIsNotWaitedForAgain) {
  const auto lanes = runLanes(initialised(2) + R"(
mbarrier.arrive.shared.b64 %l0, [barrier];
mbarrier.arrive_drop.shared.b64 %l1, [barrier];
mbarrier.arrive.shared.b64 %l2, [barrier];
mbarrier.pending_count.b64 %r, %l2;
mbarrier.test_wait.shared.b64 %p, [barrier], %l2;
selp.u32 %s, 1, 0, %p;
)",
                              1, kShared);
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0], (Lane{1, 1}));
}

TEST(PtxMbarrier, BytesThatAreExpectedAreWaitedFor) {
  const auto lanes = runLanes(initialised(1) + R"(
mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [barrier], 48;
mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %l0, [barrier], 16;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [barrier], 40;
mbarrier.test_wait.shared.b64 %p, [barrier], %l0;
selp.u32 %r, 1, 0, %p;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [barrier], 24;
mbarrier.try_wait.shared.b64 %p, [barrier], %l0;
selp.u32 %s, 1, 0, %p;
mbarrier.inval.shared::cta.b64 [barrier];
)",
                              1, kShared);
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0], (Lane{0, 1}));
}

TEST(PtxMbarrier, GenericAddressesReachIt) {
  const auto lanes = runLanes("cvta.shared.u64 %l2, barrier;\n" + std::string(R"(
mbarrier.init.b64 [%l2], 1;
mbarrier.arrive.b64 %l0, [%l2];
mbarrier.test_wait.b64 %p, [%l2], %l0;
selp.u32 %r, 1, 0, %p;
)"),
                              1, ".shared .align 8 .b64 barrier;\n");
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0].r, 1u);
}

TEST(PtxMbarrier, MoreArrivalsThanItWasMadeForAreTold) {
  Program program = Program::of(kShared + kernelText("crowd",
                                                     ".reg .u64 %l;\nmbarrier.init.shared.b64 [barrier], 2;\n"
                                                     "mbarrier.arrive.shared.b64 %l, [barrier], 3;"));
  const std::string why = program.trapOf("crowd", {}, {});
  EXPECT_NE(why.find("3 arrivals"), std::string::npos) << why;
  EXPECT_NE(why.find("needs 2 more"), std::string::npos) << why;
}

TEST(PtxBulkCopy, FillsSharedMemoryAndTellsTheBarrier) {
  const auto lanes = runLanes(initialised(1) + R"(
.reg .u64 %from;
mov.u64 %from, given;
setp.ne.u32 %p, %index, 0;
@%p bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], 32;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [words], [%from], 16, [barrier];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [words+16], [%from+16], 16, [barrier], 0;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %q, [barrier], 0;
@!%q bra WAIT;
ld.shared.u32 %r, [words];
ld.shared.u32 %s, [words+28];
)",
                              33, kShared);
  ASSERT_EQ(lanes.size(), 33u);
  for (const Lane& lane : lanes) EXPECT_EQ(lane, (Lane{1, 8}));
}

TEST(PtxBulkCopy, EmptiesSharedMemoryInGroups) {
  const auto lanes = runLanes(R"(
.reg .u64 %to;
mov.u64 %to, taken;
st.shared.u32 [words], 7;
st.shared.u32 [words+12], 9;
fence.proxy.async.shared::cta;
cp.async.bulk.global.shared::cta.bulk_group [%to], [words], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
st.shared.u32 [words], 0;
cp.async.bulk.wait_group 0;
ld.global.u32 %r, [%to];
ld.global.u32 %s, [%to+12];
)",
                              1, kShared);
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0], (Lane{7, 9}));
}

TEST(PtxBulkCopy, GoesFromSharedToSharedMemoryOfTheCluster) {
  const auto lanes = runLanes(initialised(1) + R"(
.reg .u32 %there, %told, %rank;
st.shared.u32 [words], 5;
mov.u32 %there, words;
mov.u32 %told, barrier;
mapa.shared::cluster.u32 %there, %there, 0;
mapa.shared::cluster.u32 %told, %told, 0;
getctarank.shared::cluster.u32 %rank, %there;
mbarrier.arrive.expect_tx.shared::cta.b64 %l0, [barrier], 16;
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%there+64], [words], 16, [%told];
)" + kWaitForState + "ld.shared.u32 %r, [words+64];\nmov.u32 %s, %rank;\n",
                              1, kShared);
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0], (Lane{5, 0}));
}

TEST(PtxBulkCopy, SmallCopiesTellABarrierAsWell) {
  const auto lanes = runLanes(initialised(2) + R"(
.reg .u64 %from;
mov.u64 %from, given;
cp.async.ca.shared.global [words], [%from], 16;
cp.async.mbarrier.arrive.noinc.shared::cta.b64 [barrier];
cp.async.mbarrier.arrive.shared::cta.b64 [barrier];
mbarrier.arrive.shared.b64 %l0, [barrier];
mbarrier.pending_count.b64 %s, %l0;
)" + kWaitForState + "ld.shared.u32 %r, [words+8];\n",
                              1, kShared);
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0], (Lane{3, 1}));
}

TEST(PtxBulkCopy, TensorsAreRefusedByName) {
  Program program = Program::of(kShared + kernelText("tensor",
                                                     ".reg .u64 %m;\n.reg .u32 %c;\n"
                                                     "cp.async.bulk.tensor.1d.shared::cluster.global.tile."
                                                     "mbarrier::complete_tx::bytes [words], [%m, {%c}], "
                                                     "[barrier];"));
  EXPECT_EQ(program.get() == nullptr ? nullptr : program.kernel("tensor"), nullptr);
  EXPECT_NE(program.why().find("cp.async.bulk.tensor"), std::string::npos) << program.why();
}

}  // namespace
}  // namespace tutti::softgpu::test
