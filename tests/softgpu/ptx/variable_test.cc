// Variables of a module, of a kernel and of a thread, and how they begin.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "softgpu/ptx/run.h"

namespace tutti::softgpu::test {
namespace {

/// A module with `declarations` whose kernel stores, as words of 64 bits, what `loads` leave in %v.
std::vector<std::uint64_t> loaded(const std::string& declarations, const std::vector<std::string>& loads) {
  std::string body = ".reg .u64 %v, %w;\n";
  for (std::size_t i = 0; i < loads.size(); ++i)
    body += loads[i] + "\nst.global.u64 [%out+" + std::to_string(8 * i) + "], %v;\n";
  return runBody(body, 1, {}, loads.size(), declarations);
}

using Values = std::vector<std::uint64_t>;

TEST(PtxVariable, BeginAsTheirInitializersSay) {
  const auto values =
      loaded(R"(
.global .u32 number = 42;
.global .s16 negative = -2;
.global .align 8 .u64 list[4] = {1, 0x200, 3};
.const .f32 half = 0f3F000000;
.const .align 8 .f64 quarter = 0d3FD0000000000000;
.const .b8 bytes[6] = {1, 2, 0xff, -1, 065};
.global .b32 table[2][3] = {{1, 2, 3}, {4, 5}};
.global .f32 decimal = 1.5;
.visible .global .align 16 .b8 zeros[32];
.global .v4 .b32 vector = {7, 8, 9, 10};
)",
             {"ld.global.u32 %v, [number];", "ld.global.s16 %v, [negative];", "ld.global.u64 %v, [list+8];",
              "ld.global.u64 %v, [list+24];", "ld.const.u32 %v, [half];", "ld.const.u64 %v, [quarter];",
              "ld.const.u8 %v, [bytes+3];", "ld.const.u8 %v, [bytes+4];", "ld.const.u8 %v, [bytes+5];",
              "ld.global.u32 %v, [table+12];", "ld.global.u32 %v, [table+20];", "ld.global.u32 %v, [decimal];",
              "ld.global.u64 %v, [zeros+16];", "ld.global.u64 %v, [vector+8];", "ld.global.u32 %v, [list];"});
  EXPECT_EQ(values, (Values{42, 0xfffffffffffffffeu, 0x200, 0, 0x3f000000, 0x3fd0000000000000u, 0xff, 065, 0, 4, 0,
                            0x3fc00000, 0, 0x0000000a00000009u, 1}));
}

TEST(PtxVariable, MayBeginAsConstantExpressions) {
  EXPECT_EQ(loaded(".global .u32 sum = 3 * (4 + 5);\n.const .u32 list[2] = {1 << 4, ~0};\n",
                   {"ld.global.u32 %v, [sum];", "ld.const.u32 %v, [list];", "ld.const.u32 %v, [list+4];"}),
            (Values{27, 16, 0xffffffffu}));
}

TEST(PtxVariable, MayHoldAddressesOfOthers) {
  const std::string declarations = R"(
.global .align 8 .u32 cells[4] = {10, 20, 30, 40};
.const .align 4 .u32 fixed[2] = {50, 60};
.global .align 8 .u64 first = cells;
.global .align 8 .u64 third = cells+8;
.global .align 8 .u64 both[2] = {generic(cells)+4, generic(fixed)+4};
.global .align 8 .u64 chain = generic(third);
.const .align 8 .u64 inConstant = generic(cells)+12;
)";
  const auto values = loaded(
      declarations,
      {"ld.global.u64 %w, [first]; ld.global.u32 %v, [%w];", "ld.global.u64 %w, [third]; ld.global.u32 %v, [%w];",
       "ld.global.u64 %w, [both]; ld.u32 %v, [%w];", "ld.global.u64 %w, [both+8]; ld.u32 %v, [%w];",
       "ld.global.u64 %w, [chain]; ld.u64 %w, [%w]; ld.global.u32 %v, [%w];",
       "ld.const.u64 %w, [inConstant]; ld.u32 %v, [%w];"});
  EXPECT_EQ(values, (Values{10, 30, 20, 60, 30, 40}));
}

TEST(PtxVariable, AddressesAreTakenByMove) {
  const auto values =
      loaded(".global .align 8 .u32 cells[4] = {10, 20, 30, 40};\n.const .u32 fixed[2] = {50, 60};\n",
             {"mov.u64 %w, cells; ld.global.u32 %v, [%w+4];", "mov.u64 %w, cells+8; ld.global.u32 %v, [%w];",
              "mov.u64 %w, fixed; ld.const.u32 %v, [%w+4];", "cvta.global.u64 %w, cells; ld.u32 %v, [%w+12];",
              "mov.u64 %w, fixed; cvta.const.u64 %w, %w; ld.u32 %v, [%w];",
              "st.global.u32 [cells+4], 77; mov.u64 %w, cells; ld.global.u32 %v, [%w+4];"});
  EXPECT_EQ(values, (Values{20, 30, 60, 40, 50, 77}));
}

TEST(PtxVariable, AreListedWithTheirPlaceAndSize) {
  Program program = Program::of(
      ".visible .global .align 4 .u32 counter = 5;\n.visible .const .align 8 .b8 blob[24];\n"
      ".global .align 256 .b8 aligned[8];\n" +
      kernelText("nothing", ""));
  ASSERT_NE(program.get(), nullptr) << program.why();
  const PtxVariable* const counter = program.variable("counter");
  const PtxVariable* const blob = program.variable("blob");
  const PtxVariable* const aligned = program.variable("aligned");
  ASSERT_NE(counter, nullptr);
  ASSERT_NE(blob, nullptr);
  ASSERT_NE(aligned, nullptr);
  EXPECT_EQ(counter->bytes, 4u);
  EXPECT_FALSE(counter->constant);
  EXPECT_EQ(blob->bytes, 24u);
  EXPECT_TRUE(blob->constant);
  EXPECT_EQ(aligned->offset % 256, 0u);
  EXPECT_LE(counter->offset + counter->bytes, program.get()->variableBytes);
  std::uint32_t initial = 0;
  std::memcpy(&initial, program.get()->initial + counter->offset, sizeof(initial));
  EXPECT_EQ(initial, 5u);
}

TEST(PtxVariable, KeepWhatKernelsStored) {
  Program program = Program::of(".global .align 4 .u32 counter = 5;\n" +
                                kernelText("count", ".reg .u32 %old;\natom.global.add.u32 %old, [counter], 1;\n"));
  ASSERT_NE(program.get(), nullptr) << program.why();
  program.run("count", {{10, 1, 1}, {3, 1, 1}, 0}, {}, 0);
  ASSERT_NE(program.variable("counter"), nullptr);
  std::uint32_t counter = 0;
  std::memcpy(&counter, program.variables() + program.variable("counter")->offset, sizeof(counter));
  EXPECT_EQ(counter, 35u);
}

TEST(PtxVariable, OfThreadsAreTheirOwn) {
  const auto lanes = runLanes(R"(
.local .align 4 .b32 stack[8];
.local .align 8 .b8 other[16];
mov.u64 %l0, stack;
mov.u32 %t0, 0;
FILL:
mul.wide.u32 %l1, %t0, 4;
add.u64 %l1, %l0, %l1;
mad.lo.u32 %t1, %index, 100, %t0;
st.local.u32 [%l1], %t1;
add.u32 %t0, %t0, 1;
setp.lt.u32 %p, %t0, 8;
@%p bra FILL;
st.local.u64 [other], 5;
st.local.u64 [other+8], 6;
bar.sync 0;
ld.local.u32 %r, [stack+12];
ld.local.u32 %s, [other+8];
)",
                              64);
  ASSERT_EQ(lanes.size(), 64u);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(lanes[i], (Lane{i * 100 + 3, 6})) << i;
}

TEST(PtxVariable, SharedOnesAreTheBlocksAndDynamicMemoryBeginsBehindThem) {
  Program program = Program::of(".extern .shared .align 16 .b8 dynamic[];\n.shared .align 4 .b8 outer[12];\n" +
                                kernelText("shares", R"(
.shared .align 8 .b64 inner[2];
.reg .u32 %x, %y; .reg .u64 %l; .reg .pred %first;
setp.eq.u32 %first, %index, 0;
@%first st.shared.u32 [outer+8], 3;
@%first st.shared.u64 [inner+8], 4;
mov.u32 %x, dynamic;
mad.lo.u32 %x, %index, 4, %x;
add.u32 %y, %thread, 50;
st.shared.u32 [%x], %y;
bar.sync 0;
xor.b32 %y, %index, 1;
mov.u32 %x, dynamic;
mad.lo.u32 %x, %y, 4, %x;
ld.shared.u32 %y, [%x];
ld.shared.u32 %x, [outer+8];
mad.lo.u32 %y, %x, 1000, %y;
ld.shared.u64 %l, [inner+8];
cvt.u32.u64 %x, %l;
mad.lo.u32 %y, %x, 10000, %y;
mul.wide.u32 %l, %thread, 8;
add.u64 %out, %out, %l;
cvt.u64.u32 %l, %y;
st.global.u64 [%out], %l;
)"));
  ASSERT_NE(program.get(), nullptr) << program.why();
  ASSERT_NE(program.function("shares"), nullptr);
  EXPECT_GE(program.function("shares")->staticSharedBytes, 28u);
  const auto words = program.run("shares", {{32, 1, 1}, {2, 1, 1}, 128}, {}, 64);
  ASSERT_EQ(words.size(), 64u);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(words[i], 43050 + (i ^ 1)) << i;
}

TEST(PtxVariable, TellHowManyThreadsAKernelMayHave) {
  std::string text = kernelText("bound", "");
  text.insert(text.find("\n{"), "\n.maxntid 64, 2, 1\n.minnctapersm 1");
  std::string exact = kernelText("exact", "");
  exact.insert(exact.find("\n{"), "\n.reqntid 96");
  Program program = Program::of(text + exact + kernelText("free", ""));
  ASSERT_NE(program.get(), nullptr) << program.why();
  ASSERT_EQ(program.get()->functionCount, 3u);
  EXPECT_EQ(program.function("bound")->maxThreads, 128u);
  EXPECT_EQ(program.function("exact")->maxThreads, 96u);
  EXPECT_EQ(program.function("free")->maxThreads, 1024u);
}

}  // namespace
}  // namespace tutti::softgpu::test
