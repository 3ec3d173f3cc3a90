// Moves: parts of registers, and registers that tell a thread where it is.
#include <gtest/gtest.h>

#include <string>

#include "softgpu/ptx/cases.h"

namespace tutti::softgpu::test {
namespace {

TEST(PtxMove, VectorsAreJoinedAndSplitFromTheLowEnd) {
  expectResults({
      {"mov.b32 %d, {%a, %b};", "b32 = b16 b16", {{{0x1234, 0xabcd}, 0xabcd1234u}}},
      {"mov.b32 {%d, %e}, %a;", "b16 b16 = b32", {{0xabcd1234u, {0x1234, 0xabcd}}}},
      {"mov.b64 %d, {%a, %b};", "b64 = b32 b32", {{{0x12345678, 0x9abcdef0u}, 0x9abcdef012345678u}}},
      {"mov.b64 {%d, %e}, %a;", "b32 b32 = b64", {{0x9abcdef012345678u, {0x12345678, 0x9abcdef0u}}}},
      {"mov.b64 {%d, _}, %a;", "b32 = b64", {{0x9abcdef012345678u, 0x12345678}}},
      {"mov.b64 {_, %d}, %a;", "b32 = b64", {{0x9abcdef012345678u, 0x9abcdef0u}}},
      {"mov.b64 %d, {%a, %b, %c, %f};", "b64 = b16 b16 b16 b16", {{{1, 2, 3, 4}, 0x0004000300020001u}}},
      {"mov.b64 {%d, %e, %g, %h}, %a;", "b16 b16 b16 b16 = b64", {{0x0004000300020001u, {1, 2, 3, 4}}}},
      {"mov.b64 {%d, %e}, %a;", "f32 f32 = f64", {{0x3f80000040000000u, {2.f, 1.f}}}},
      {"{ .reg .b8 %x<4>; mov.b32 {%x0, %x1, %x2, %x3}, %a; mov.b32 %d, {%x3, %x2, %x1, %x0}; }",
       "b32 = b32",
       {{0x12345678, 0x78563412}}},
      {"{ .reg .b128 %q; mov.b128 %q, {%a, %b}; mov.b128 {%e, %d}, %q; }", "b64 b64 = b64 b64", {{{1, 2}, {2, 1}}}},
  });
}

TEST(PtxMove, NumbersAreWrittenAsDecimalsOrBits) {
  expectResults({
      {"mov.f32 %d, 0f3fc00000;", "f32 =", {{{}, 1.5f}}},
      {"mov.f64 %d, 0d3ff8000000000000;", "f64 =", {{{}, 1.5}}},
      {"mov.f32 %d, 1.5;", "f32 =", {{{}, 1.5f}}},
      {"mov.f64 %d, -0.1;", "f64 =", {{{}, -0.1}}},
      {"add.f32 %d, %a, 0f3F800000;", "f32 = f32", {{1.f, 2.f}}},
      {"mov.b32 %d, 0f3F800000;", "b32 =", {{{}, 0x3f800000}}},
      {"mov.b16 %d, 0x8001;", "b16 =", {{{}, 0x8001}}},
      {"mov.f32 %d, 0fFF800000;", "f32 =", {{{}, -std::numeric_limits<float>::infinity()}}},
      {"mov.b64 %d, WARP_SZ;", "b64 =", {{{}, 32}}},
  });
}

TEST(PtxMove, NumbersMayHaveAnExponent) {
  expectResults({
      {"mov.f32 %d, 1e3;", "f32 =", {{{}, 1000.f}}},
      {"mov.f64 %d, -2.5e-3;", "f64 =", {{{}, -2.5e-3}}},
      {"mov.f64 %d, 1.E+2;", "f64 =", {{{}, 100.0}}},
  });
}

/// Stores `names` as words of 32 bits, one after the other, for each thread of the grid.
std::string storeAll(const std::vector<std::string>& names) {
  std::string body =
      ".reg .u32 %v, %bx, %by, %bz, %gx, %gy, %block, %size;\n.reg .u64 %at;\n"
      "mov.u32 %block, %ctaid.z;\nmov.u32 %gy, %nctaid.y;\nmov.u32 %by, %ctaid.y;\nmad.lo.u32 %block, %block, %gy, "
      "%by;\n"
      "mov.u32 %gx, %nctaid.x;\nmov.u32 %bx, %ctaid.x;\nmad.lo.u32 %block, %block, %gx, %bx;\n"
      "mov.u32 %v, %tid.z;\nmov.u32 %by, %ntid.y;\nmov.u32 %bx, %tid.y;\nmad.lo.u32 %v, %v, %by, %bx;\n"
      "mov.u32 %bx, %ntid.x;\nmov.u32 %bz, %tid.x;\nmad.lo.u32 %v, %v, %bx, %bz;\n"
      "mul.lo.u32 %size, %bx, %by;\nmov.u32 %bz, %ntid.z;\nmul.lo.u32 %size, %size, %bz;\n"
      "mad.lo.u32 %v, %block, %size, %v;\nmul.wide.u32 %at, %v, " +
      std::to_string(8 * names.size()) + ";\nadd.u64 %at, %at, %out;\n";
  for (std::size_t i = 0; i < names.size(); ++i) {
    body += "{ .reg .u64 %w; mov.u32 %v, " + names[i] + "; cvt.u64.u32 %w, %v; st.global.u64 [%at+" +
            std::to_string(8 * i) + "], %w; }\n";
  }
  return body;
}

TEST(PtxMove, ThreadsKnowTheirPlaceInThreeDimensions) {
  const std::vector<std::string> names = {"%tid.x",   "%tid.y",   "%tid.z",   "%ntid.x",   "%ntid.y",   "%ntid.z",
                                          "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z"};
  const Shape shape{{4, 2, 3}, {2, 3, 2}, 0};
  Program program = Program::of(kernelText("places", storeAll(names)));
  ASSERT_NE(program.get(), nullptr) << program.why();
  const auto words = program.run("places", shape, {}, 24 * 12 * names.size());
  ASSERT_FALSE(words.empty());
  for (std::uint32_t block = 0; block < 12; ++block) {
    for (std::uint32_t thread = 0; thread < 24; ++thread) {
      const std::uint32_t expected[] = {thread % 4, thread / 4 % 2, thread / 8, 4, 2, 3,
                                        block % 2,  block / 2 % 3,  block / 6,  2, 3, 2};
      for (std::size_t i = 0; i < names.size(); ++i)
        ASSERT_EQ(words[(block * 24 + thread) * names.size() + i], expected[i])
            << names[i] << " " << block << " " << thread;
    }
  }
}

TEST(PtxMove, ThreadsKnowTheirLane) {
  const std::vector<std::string> names = {"%laneid",      "%lanemask_eq", "%lanemask_le", "%lanemask_lt",
                                          "%lanemask_ge", "%lanemask_gt", "%nwarpid",     "%warpid"};
  Program program = Program::of(kernelText("lanes", storeAll(names)));
  ASSERT_NE(program.get(), nullptr) << program.why();
  const auto words = program.run("lanes", {{10, 7, 1}, {1, 1, 1}, 0}, {}, 70 * names.size());
  ASSERT_FALSE(words.empty());
  for (std::uint32_t thread = 0; thread < 70; ++thread) {
    const std::uint64_t* const of = &words[thread * names.size()];
    const std::uint32_t lane = thread % 32, bit = 1u << lane;
    const std::uint32_t expected[] = {lane, bit, bit | (bit - 1), bit - 1, ~(bit - 1), ~(bit | (bit - 1))};
    for (std::size_t i = 0; i < std::size(expected); ++i) ASSERT_EQ(of[i], expected[i]) << names[i] << " " << thread;
    EXPECT_GE(of[6], 3u);
    EXPECT_LT(of[7], of[6]);
    EXPECT_EQ(of[7], words[thread / 32 * 32 * names.size() + 7]) << "the lanes of a warp agree";
    EXPECT_EQ(of[7] == words[7], thread < 32) << "and not with those of another";
  }
}

TEST(PtxMove, ClocksDoNotGoBack) {
  expectResults({
      {"{ .reg .u64 %x, %y; mov.u64 %x, %clock64; mov.u64 %y, %clock64; setp.le.u64 %d, %x, %y; }",
       "pred =",
       {{{}, 1}}},
      {"{ .reg .u64 %x, %y; mov.u64 %x, %globaltimer; mov.u64 %y, %globaltimer; setp.le.u64 %d, %x, %y;"
       " setp.ne.u64 %e, %x, 0; }",
       "pred pred =",
       {{{}, {1, 1}}}},
      {"{ .reg .u32 %x, %y; mov.u32 %x, %clock; mov.u32 %y, %clock_hi; mov.u32 %y, %globaltimer_lo;"
       " mov.u32 %y, %globaltimer_hi; setp.ne.u32 %d, %y, 0; }",
       "pred =",
       {{{}, 1}}},
  });
}

TEST(PtxMove, KernelsKnowTheirSharedMemoryAndProcessor) {
  Program program = Program::of(".extern .shared .align 16 .b8 dynamic[];\n" +
                                kernelText("sizes",
                                           ".shared .align 4 .b8 fixed[100];\nst.shared.u8 [fixed], 1;\n"
                                           "st.shared.u8 [dynamic], 1;\n" +
                                               storeAll({"%dynamic_smem_size", "%total_smem_size", "%smid", "%nsmid",
                                                         "%cluster_nctarank", "%cluster_ctarank"})));
  ASSERT_NE(program.get(), nullptr) << program.why();
  ASSERT_NE(program.function("sizes"), nullptr);
  EXPECT_GE(program.function("sizes")->staticSharedBytes, 100u);
  EXPECT_EQ(program.function("sizes")->staticSharedBytes % 16, 0u) << "dynamic memory begins behind it, aligned";
  const auto words = program.run("sizes", {{1, 1, 1}, {1, 1, 1}, 5000}, {}, 6);
  ASSERT_EQ(words.size(), 6u);
  EXPECT_EQ(words[0], 5000u);
  EXPECT_GE(words[1], 5100u);
  EXPECT_LT(words[2], words[3]);
  EXPECT_EQ(words[4], 1u);
  EXPECT_EQ(words[5], 0u);
}

}  // namespace
}  // namespace tutti::softgpu::test
