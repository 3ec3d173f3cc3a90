// Functions: parameters and results of all kinds, recursion, calls by address.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "softgpu/ptx/run.h"

namespace tutti::softgpu::test {
namespace {

TEST(PtxCall, PassesScalarsAndReturnsOne) {
  const std::string function = R"(
.visible .func (.param .b32 result) combine(.param .b32 a, .param .b64 b, .param .f32 c, .param .b8 d)
{
  .reg .u32 %x, %y; .reg .u64 %l; .reg .f32 %f;
  ld.param.u32 %x, [a];
  ld.param.u64 %l, [b];
  cvt.u32.u64 %y, %l;
  mad.lo.u32 %x, %x, 2, %y;
  ld.param.f32 %f, [c];
  cvt.rzi.u32.f32 %y, %f;
  add.u32 %x, %x, %y;
  ld.param.s8 %y, [d];
  add.u32 %x, %x, %y;
  st.param.u32 [result], %x;
  ret;
}
)";
  const auto lanes = runLanes(R"(
.reg .f32 %f;
cvt.u64.u32 %l0, %index;
mov.f32 %f, 0f42c80000;
{
  .param .b32 a; .param .b64 b; .param .f32 c; .param .b8 d; .param .b32 result;
  st.param.b32 [a], %index;
  st.param.b64 [b], %l0;
  st.param.f32 [c], %f;
  st.param.b8 [d], -1;
  call.uni (result), combine, (a, b, c, d);
  ld.param.b32 %r, [result];
}
)",
                              33, function);
  ASSERT_EQ(lanes.size(), 33u);
  for (std::uint32_t i = 0; i < 33; ++i) EXPECT_EQ(lanes[i].r, 3 * i + 99) << i;
}

TEST(PtxCall, PassesAndReturnsStructsAsBytes) {
  const std::string function = R"(
.func (.param .align 8 .b8 result[16]) turn(.param .align 8 .b8 pair[16], .param .align 4 .b8 more[8])
{
  .reg .u64 %a, %b; .reg .u32 %x, %y;
  ld.param.v2.u64 {%a, %b}, [pair];
  ld.param.u32 %x, [more];
  ld.param.u32 %y, [more+4];
  add.u64 %a, %a, 1;
  st.param.u64 [result], %b;
  st.param.u64 [result+8], %a;
  add.u32 %x, %x, %y;
  st.param.b32 [result+4], %x;
  ret;
}
)";
  const auto lanes = runLanes(R"(
{
  .param .align 8 .b8 pair[16]; .param .align 4 .b8 more[8]; .param .align 8 .b8 result[16];
  st.param.b64 [pair], 10;
  st.param.b64 [pair+8], 20;
  st.param.v2.b32 [more], {%index, 5};
  call (result), turn, (pair, more);
  ld.param.v2.b32 {%r, %t0}, [result];
  ld.param.u64 %l0, [result+8];
  cvt.u32.u64 %s, %l0;
  mad.lo.u32 %s, %t0, 100, %s;
}
)",
                              4, function);
  ASSERT_EQ(lanes.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(lanes[i], (Lane{20, (i + 5) * 100 + 11})) << i;
}

TEST(PtxCall, PassesRegisters) {
  const std::string function = R"(
.func (.reg .u32 sum, .reg .u32 product) both(.reg .u32 a, .reg .u32 b)
{
  add.u32 sum, a, b;
  mul.lo.u32 product, a, b;
  ret;
}
)";
  const auto lanes = runLanes("call (%r, %s), both, (%index, 7);\n", 4, function);
  ASSERT_EQ(lanes.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(lanes[i], (Lane{i + 7, i * 7})) << i;
}

TEST(PtxCall, MayBeDeclaredBeforeAndDefinedAfter) {
  const std::string before = ".func (.param .b32 result) later(.param .b32 a);\n";
  Program program = Program::of(
      before +
      kernelText("calls",
                 "{ .reg .u32 %x; .reg .u64 %y; .param .b32 a, r; st.param.b32 [a], 20;"
                 " call (r), later, (a); ld.param.b32 %x, [r]; cvt.u64.u32 %y, %x; st.global.u64 [%out], %y; }") +
      ".func (.param .b32 result) later(.param .b32 a)\n{ .reg .b32 %x; ld.param.b32 %x, [a]; add.u32 %x, %x, 2;"
      " st.param.b32 [result], %x; ret; }\n");
  ASSERT_NE(program.get(), nullptr) << program.why();
  EXPECT_EQ(program.run("calls", {}, {}, 1), (std::vector<std::uint64_t>{22}));
}

TEST(PtxCall, RecursesWithItsOwnRegistersAndMemory) {
  const std::string function = R"(
.func (.param .b32 result) fibonacci(.param .b32 n)
{
  .reg .u32 %n, %a, %b; .reg .pred %small; .reg .u64 %at;
  .local .align 4 .b8 kept[4];
  ld.param.u32 %n, [n];
  mov.u64 %at, kept;
  st.local.u32 [%at], %n;
  setp.lt.u32 %small, %n, 2;
  @%small bra SMALL;
  sub.u32 %n, %n, 1;
  { .param .b32 p, r; st.param.b32 [p], %n; call.uni (r), fibonacci, (p); ld.param.b32 %a, [r]; }
  ld.local.u32 %n, [%at];
  sub.u32 %n, %n, 2;
  { .param .b32 p, r; st.param.b32 [p], %n; call.uni (r), fibonacci, (p); ld.param.b32 %b, [r]; }
  add.u32 %a, %a, %b;
  st.param.b32 [result], %a;
  ret;
SMALL:
  st.param.b32 [result], %n;
  ret;
}
)";
  const auto lanes =
      runLanes("{ .param .b32 p, r; st.param.b32 [p], %index; call (r), fibonacci, (p); ld.param.b32 %r, [r]; }\n", 16,
               function);
  ASSERT_EQ(lanes.size(), 16u);
  std::uint32_t a = 0, b = 1;
  for (std::uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(lanes[i].r, a) << i;
    std::swap(a, b);
    b += a;
  }
}

const char* const kTwoFunctions = R"(
.func (.param .b32 result) first(.param .b32 a)
{ .reg .b32 %x; ld.param.b32 %x, [a]; add.u32 %x, %x, 100; st.param.b32 [result], %x; ret; }
.func (.param .b32 result) second(.param .b32 a)
{ .reg .b32 %x; ld.param.b32 %x, [a]; mul.lo.u32 %x, %x, 3; st.param.b32 [result], %x; ret; }
)";

TEST(PtxCall, GoesThroughATableOfAddresses) {
  const auto lanes = runLanes(R"(
and.b32 %t0, %index, 1;
mul.wide.u32 %l0, %t0, 8;
mov.u64 %l1, table;
add.u64 %l1, %l1, %l0;
ld.global.u64 %l2, [%l1];
{
  .param .b32 p, r;
  st.param.b32 [p], %index;
  prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
  call (r), %l2, (p), prototype;
  ld.param.b32 %r, [r];
}
)",
                              8, std::string(kTwoFunctions) + ".global .align 8 .u64 table[2] = {first, second};\n");
  ASSERT_EQ(lanes.size(), 8u);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(lanes[i].r, i % 2 == 0 ? i + 100 : i * 3) << i;
}

TEST(PtxCall, TakesAnAddressByMove) {
  const auto lanes = runLanes(R"(
mov.u64 %l0, first;
mov.u64 %l1, second;
setp.lt.u32 %p, %index, 2;
selp.b64 %l2, %l0, %l1, %p;
{
  .param .b32 p, r;
  st.param.b32 [p], %index;
  prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
  call (r), %l2, (p), prototype;
  ld.param.b32 %r, [r];
}
)",
                              4, kTwoFunctions);
  ASSERT_EQ(lanes.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(lanes[i].r, i < 2 ? i + 100 : i * 3) << i;
}

TEST(PtxCall, GoesToOneOfTheListedTargets) {
  const auto lanes = runLanes(R"(
mov.u64 %l2, second;
{
  .param .b32 p, r;
  st.param.b32 [p], %index;
  targets: .calltargets first, second;
  call (r), %l2, (p), targets;
  ld.param.b32 %r, [r];
}
)",
                              4, kTwoFunctions);
  ASSERT_EQ(lanes.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(lanes[i].r, i * 3) << i;
}

TEST(PtxCall, FunctionsMeetOthersAtBarriers) {
  const std::string function = R"(
.shared .align 4 .b32 cells[64];
.func (.param .b32 result) exchange(.param .b32 a)
{
  .reg .u32 %x, %i, %at;
  ld.param.u32 %x, [a];
  mov.u32 %i, %tid.x;
  mov.u32 %at, cells;
  mad.lo.u32 %at, %i, 4, %at;
  st.shared.u32 [%at], %x;
  bar.sync 0;
  xor.b32 %i, %i, 63;
  mov.u32 %at, cells;
  mad.lo.u32 %at, %i, 4, %at;
  ld.shared.u32 %x, [%at];
  bar.sync 0;
  st.param.b32 [result], %x;
  ret;
}
)";
  const auto lanes = runLanes(
      "mul.lo.u32 %t0, %index, 9;\n{ .param .b32 p, r; st.param.b32 [p], %t0; call (r), exchange, (p);"
      " ld.param.b32 %r, [r]; }\n",
      64, function);
  ASSERT_EQ(lanes.size(), 64u);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(lanes[i].r, (63 - i) * 9) << i;
}

TEST(PtxCall, DiscardsWhatIsNotWanted) {
  const auto lanes = runLanes(
      "{ .param .b32 p, r; st.param.b32 [p], 1; call (r), first, (p); }\nsetp.eq.u32 %p, %index, 1;\n"
      "{ .param .b32 p, r; st.param.b32 [p], 5; st.param.b32 [r], 8; mov.u32 %r, 8;"
      " @!%p bra OVER; call (r), second, (p); ld.param.b32 %r, [r]; OVER: }\n",
      2, kTwoFunctions);
  ASSERT_EQ(lanes.size(), 2u);
  EXPECT_EQ(lanes[0].r, 8u);
  EXPECT_EQ(lanes[1].r, 15u);
}

}  // namespace
}  // namespace tutti::softgpu::test
