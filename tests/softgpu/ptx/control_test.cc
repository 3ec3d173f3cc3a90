// Branches, loops, tables of labels, scopes, and ways to end.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "softgpu/ptx/run.h"

namespace tutti::softgpu::test {
namespace {

TEST(PtxControl, LoopsRunAsOftenAsEachThreadWants) {
  const auto lanes = runLanes(R"(
mov.u32 %t0, 0;
mov.u32 %r, 0;
bra.uni CHECK;
BODY:
add.u32 %r, %r, %t0;
add.u32 %t0, %t0, 1;
CHECK:
setp.le.u32 %p, %t0, %index;
@%p bra BODY;
mov.u32 %s, %t0;
)",
                              40);
  ASSERT_EQ(lanes.size(), 40u);
  for (std::uint32_t i = 0; i < 40; ++i) EXPECT_EQ(lanes[i], (Lane{i * (i + 1) / 2, i + 1})) << i;
}

TEST(PtxControl, NestedLoopsAndBranchesOutOfThem) {
  const auto lanes = runLanes(R"(
mov.u32 %t0, 0;
OUTER:
mov.u32 %t1, 0;
INNER:
add.u32 %r, %r, 1;
setp.eq.u32 %p, %r, 25;
@%p bra OUT;
add.u32 %t1, %t1, 1;
setp.lt.u32 %p, %t1, %index;
@%p bra.uni INNER;
add.u32 %t0, %t0, 1;
setp.lt.u32 %p, %t0, 5;
@!%p bra END;
bra OUTER;
OUT:
mov.u32 %s, 1;
END:
)",
                              8);
  ASSERT_EQ(lanes.size(), 8u);
  for (std::uint32_t i = 0; i < 8; ++i) {
    const std::uint32_t rounds = 5 * std::max(i, 1u);
    EXPECT_EQ(lanes[i], (Lane{std::min(rounds, 25u), rounds >= 25 ? 1u : 0u})) << i;
  }
}

TEST(PtxControl, ATableOfLabelsIsIndexed) {
  const auto lanes = runLanes(R"(
rem.u32 %t0, %index, 4;
TABLE: .branchtargets ZERO, ONE, TWO, ONE;
setp.lt.u32 %p, %index, 12;
@%p brx.idx %t0, TABLE;
mov.u32 %r, 99;
bra DONE;
ZERO:
mov.u32 %r, 10;
bra DONE;
ONE:
add.u32 %r, %r, 11;
TWO:
add.u32 %r, %r, 12;
DONE:
)",
                              16);
  ASSERT_EQ(lanes.size(), 16u);
  const std::uint32_t expected[] = {10, 23, 12, 23};
  for (std::uint32_t i = 0; i < 16; ++i) EXPECT_EQ(lanes[i].r, i < 12 ? expected[i % 4] : 99u) << i;
}

TEST(PtxControl, WhoPollsByATableOfLabelsLetsOthersRun) {
  const auto lanes = runLanes(R"(
TABLE: .branchtargets AGAIN, SEEN;
setp.ne.u32 %p, %index, 0;
@%p bra SETS;
st.volatile.shared.u32 [flag], 0;
AGAIN:
ld.volatile.shared.u32 %t0, [flag];
brx.idx %t0, TABLE;
SETS:
st.volatile.shared.u32 [flag], 1;
SEEN:
mov.u32 %r, 1;
)",
                              2, ".shared .align 4 .u32 flag;\n");
  EXPECT_EQ(lanes, (std::vector<Lane>{{1, 0}, {1, 0}}));
}

TEST(PtxControl, InnerScopesHideOuterNames) {
  const auto lanes = runLanes(R"(
.reg .u32 %x;
mov.u32 %x, 1;
{
  .reg .u32 %x;
  mov.u32 %x, 2;
  {
    .reg .u64 %x, y;
    mov.u64 %x, 3;
    mov.u64 y, 4;
    add.u64 %x, %x, y;
    cvt.u32.u64 %r, %x;
  }
  add.u32 %r, %r, %x;
}
add.u32 %r, %r, %x;
{
  .reg .f32 %x;
  mov.f32 %x, 0f40000000;
  cvt.rzi.u32.f32 %s, %x;
}
)",
                              1);
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0], (Lane{10, 2}));
}

TEST(PtxControl, LabelsOfScopesAreTheirOwn) {
  const auto lanes = runLanes(R"(
{ bra NEXT; mov.u32 %r, 100; NEXT: add.u32 %r, %r, 1; }
{ bra NEXT; mov.u32 %r, 100; NEXT: add.u32 %r, %r, 2; }
$L__BB0_1:
add.u32 %s, %s, 1;
setp.lt.u32 %p, %s, 3;
@%p bra $L__BB0_1;
)",
                              1);
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0], (Lane{3, 3}));
}

TEST(PtxControl, ThreadsEndByPredicatedReturnsAndExits) {
  for (const std::string end : {"ret", "exit"}) {
    const auto lanes = runLanes("st.global.v2.u32 [%mine], {5, 6};\nsetp.lt.u32 %p, %index, 7;\n@%p " + end +
                                    ";\nmov.u32 %r, 8;\nmov.u32 %s, 9;\n",
                                20);
    ASSERT_EQ(lanes.size(), 20u);
    for (std::uint32_t i = 0; i < 20; ++i) EXPECT_EQ(lanes[i], (i < 7 ? Lane{5, 6} : Lane{8, 9})) << end << " " << i;
  }
}

TEST(PtxControl, ExitOfAFunctionEndsTheThread) {
  const std::string function = R"(
.func leave(.param .u32 index)
{
  .reg .u32 %i; .reg .pred %p;
  ld.param.u32 %i, [index];
  setp.lt.u32 %p, %i, 3;
  @%p exit;
  ret;
}
)";
  const auto lanes = runLanes(
      "st.global.v2.u32 [%mine], {5, 6};\n{ .param .u32 p; st.param.u32 [p], %index; call leave, (p); }\n"
      "mov.u32 %r, 8;\n",
      6, function);
  ASSERT_EQ(lanes.size(), 6u);
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(lanes[i], (i < 3 ? Lane{5, 6} : Lane{8, 0})) << i;
}

TEST(PtxControl, TrapSaysSoAndNamesTheKernel) {
  Program program = Program::of(kernelText("falls", ".reg .pred %p;\nsetp.eq.u32 %p, %index, 3;\n@%p trap;\n"));
  ASSERT_NE(program.get(), nullptr) << program.why();
  const std::string said = program.trapOf("falls", {{8, 1, 1}, {1, 1, 1}, 0}, {});
  EXPECT_NE(said.find("trap"), std::string::npos) << said;
}

TEST(PtxControl, CodeThatNobodyReachesIsHarmless) {
  const auto lanes = runLanes("mov.u32 %r, 4;\nbra OVER;\nmov.u32 %r, 5;\nUNUSED:\ntrap;\nOVER:\n", 2);
  ASSERT_EQ(lanes.size(), 2u);
  EXPECT_EQ(lanes[0].r, 4u);
}

TEST(PtxControl, RegistersComeInRangesAndVectors) {
  const auto lanes = runLanes(R"(
.reg .b32 %many<10>;
.reg .v2 .f32 %pair;
.reg .v4 .u32 %four;
.reg .b64 wide, _under, $dollar;
mov.b32 %many0, 1;
mov.b32 %many9, 2;
add.u32 %r, %many0, %many9;
mov.u32 %four.x, 1;
mov.u32 %four.y, 2;
mov.u32 %four.z, 3;
mov.u32 %four.w, %four.z;
add.u32 %s, %four.y, %four.w;
mov.f32 %pair.x, 0f3f800000;
mov.f32 %pair.y, %pair.x;
add.f32 %pair.x, %pair.x, %pair.y;
cvt.rni.u32.f32 %t0, %pair.x;
add.u32 %s, %s, %t0;
mov.b64 wide, 5; mov.b64 _under, wide; mov.b64 $dollar, _under;
cvt.u32.u64 %t0, $dollar;
add.u32 %r, %r, %t0;
)",
                              1);
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0], (Lane{8, 7}));
}

}  // namespace
}  // namespace tutti::softgpu::test
