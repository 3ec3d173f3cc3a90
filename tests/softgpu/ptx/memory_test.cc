// Loads and stores: widths, signs, vectors, spaces, orders and hints.
#include <gtest/gtest.h>

#include <string>

#include "softgpu/ptx/cases.h"

namespace tutti::softgpu::test {
namespace {

const std::uint64_t kBytes = 0xf1e2d3c4b5a69788u;

/// Where a thread has 16 bytes of its own, at %at (.u64).
std::string slotIn(const std::string& space) {
  if (space == "global") return ".reg .u64 %at; mov.u64 %at, %out; ";
  if (space == "local") return ".reg .u64 %at; .local .align 16 .b8 slot[16]; mov.u64 %at, slot; ";
  return ".reg .u64 %at; .reg .u32 %at32; .shared .align 16 .b8 slots[512]; mov.u32 %at32, slots;"
         " mad.lo.u32 %at32, %index, 16, %at32; cvt.u64.u32 %at, %at32; ";
}

TEST(PtxMemory, LoadsExtendByTheirSign) {
  expectResults({
      {"ld.global.u8 %d, [%in];", "b32 = b64", {{kBytes, 0x88}}},
      {"ld.global.s8 %d, [%in];", "b32 = b64", {{kBytes, 0xffffff88u}}},
      {"ld.global.s8 %d, [%in+7];", "b64 = b64", {{kBytes, 0xfffffffffffffff1u}}},
      {"ld.global.u8 %d, [%in+1];", "b64 = b64", {{kBytes, 0x97}}},
      {"ld.global.s8 %d, [%in+1];", "b16 = b64", {{kBytes, 0xff97}}},
      {"ld.global.b8 %d, [%in+2];", "b32 = b64", {{kBytes, 0xa6}}},
      {"ld.global.u16 %d, [%in+2];", "b32 = b64", {{kBytes, 0xb5a6}}},
      {"ld.global.s16 %d, [%in+2];", "b32 = b64", {{kBytes, 0xffffb5a6u}}},
      {"ld.global.s16 %d, [%in+6];", "b64 = b64", {{kBytes, 0xfffffffffffff1e2u}}},
      {"ld.global.b16 %d, [%in+4];", "b16 = b64", {{kBytes, 0xd3c4}}},
      {"ld.global.s32 %d, [%in+4];", "b64 = b64", {{kBytes, 0xfffffffff1e2d3c4u}}},
      {"ld.global.u32 %d, [%in+4];", "b64 = b64", {{kBytes, 0xf1e2d3c4u}}},
      {"ld.global.b64 %d, [%in];", "b64 = b64", {{kBytes, kBytes}}},
      {"ld.global.f32 %d, [%in+4];", "f32 = b64", {{0x3fc0000000000000u, 1.5f}}},
      {"ld.global.f64 %d, [%in];", "f64 = b64", {{1.5, 1.5}}},
      {"add.u64 %b, %in, 8; ld.global.u8 %d, [%b+-8];", "b32 = b64 b64", {{{kBytes, 0}, 0x88}}},
      {"ld.u32 %d, [%in];", "b32 = b64", {{kBytes, 0xb5a69788u}}},
  });
}

TEST(PtxMemory, StoresWriteNoMoreThanTheirWidth) {
  for (const std::string space : {"global", "shared", "local"}) {
    const auto row = [&](const std::string& type, int at, const std::string& source, std::uint64_t expected) {
      return Instruction{"{ " + slotIn(space) + "st." + space + ".b64 [%at], %a; st." + space + "." + type + " [%at+" +
                             std::to_string(at) + "], %b; ld." + space + ".b64 %d, [%at]; }",
                         "b64 = b64 " + source,
                         {{{kBytes, 0x0123456789abcdefu}, expected}}};
    };
    expectResults({
        row("b8", 0, "b32", 0xf1e2d3c4b5a697efu),
        row("u8", 7, "b16", 0xefe2d3c4b5a69788u),
        row("s8", 3, "b64", 0xf1e2d3c4efa69788u),
        row("b16", 2, "b16", 0xf1e2d3c4cdef9788u),
        row("u16", 6, "b32", 0xcdefd3c4b5a69788u),
        row("b32", 4, "b32", 0x89abcdefb5a69788u),
        row("u32", 0, "b64", 0xf1e2d3c489abcdefu),
        row("f32", 4, "f32", 0x89abcdefb5a69788u),
        row("b64", 0, "b64", 0x0123456789abcdefu),
        row("f64", 0, "f64", 0x0123456789abcdefu),
    });
  }
}

TEST(PtxMemory, VectorsAreConsecutive) {
  const std::uint64_t a = 0x0000000200000001u, b = 0x0000000400000003u;
  expectResults({
      {"ld.global.v4.b32 {%d, %e, %g, %h}, [%in];", "b32 b32 b32 b32 = b64 b64", {{{a, b}, {1, 2, 3, 4}}}},
      {"ld.global.v2.b64 {%d, %e}, [%in];", "b64 b64 = b64 b64", {{{a, b}, {a, b}}}},
      {"ld.global.v2.f32 {%d, %e}, [%in];", "f32 f32 = b64", {{0x3f80000040000000u, {2.f, 1.f}}}},
      {"ld.global.v2.f64 {%d, %e}, [%in];", "f64 f64 = f64 f64", {{{1.0, 2.0}, {1.0, 2.0}}}},
      {"ld.global.v4.u8 {%d, %e, %g, %h}, [%in+4];", "b32 b32 b32 b32 = b64", {{kBytes, {0xc4, 0xd3, 0xe2, 0xf1}}}},
      {"ld.global.v2.s8 {%d, %e}, [%in+2];", "b32 b32 = b64", {{kBytes, {0xffffffa6u, 0xffffffb5u}}}},
      {"ld.global.v4.s16 {%d, %e, %g, %h}, [%in];",
       "b32 b32 b32 b32 = b64",
       {{0x0001ffff00028000u, {0xffff8000u, 2, 0xffffffffu, 1}}}},
      {"ld.global.v2.b32 {_, %d}, [%in];", "b32 = b64", {{a, 2}}},
      {"{ .reg .b128 %q; ld.global.b128 %q, [%in]; mov.b128 {%d, %e}, %q; }", "b64 b64 = b64 b64", {{{a, b}, {a, b}}}},
  });
  for (const std::string space : {"global", "shared", "local"}) {
    const std::string at = "{ " + slotIn(space), back = " ld." + space + ".v2.b64 {%d, %e}, [%at]; }";
    const std::string types = space == "global" ? "b64 b64 = b32 b32 b32 b32" : "b64 b64 = b32 b32 b32 b32";
    expectResults({
        {at + "st." + space + ".v4.b32 [%at], {%a, %b, %c, %f};" + back, types, {{{1, 2, 3, 4}, {a, b}}}},
        {at + "st." + space + ".v2.b64 [%at], {0, 0}; st." + space + ".v2.b32 [%at+8], {%a, %b};" + back,
         types,
         {{{1, 2, 3, 4}, {0, a}}}},
        {at + "st." + space + ".v2.b64 [%at], {0, 0}; st." + space + ".v4.u8 [%at+4], {%a, %b, %c, %f};" + back,
         types,
         {{{1, 2, 3, 4}, {0x0403020100000000u, 0}}}},
    });
  }
}

TEST(PtxMemory, RegistersThatAreVectorsAreLoadedAndStoredWhole) {
  const std::uint64_t a = 0x0000000200000001u, b = 0x0000000400000003u;
  expectResults({
      {"{ .reg .v4 .b32 %v; ld.global.v4.b32 %v, [%in]; mov.b32 %d, %v.x; mov.b32 %e, %v.w; }",
       "b32 b32 = b64 b64",
       {{{a, b}, {1, 4}}}},
      {"{ .reg .v2 .b32 %v; mov.b32 %v.x, %a; mov.b32 %v.y, %b; st.global.v2.b32 [%out], %v; ld.global.b64 %d, [%out]; "
       "}",
       "b64 = b32 b32",
       {{{1, 2}, a}}},
  });
}

TEST(PtxMemory, GenericAddressesLeadToEverySpace) {
  for (const std::string space : {"global", "shared", "local"}) {
    const std::string at = "{ .reg .u64 %to; .reg .pred %p; " + slotIn(space);
    expectResults({
        {at + "cvta." + space + ".u64 %to, %at; st.b32 [%to+4], %a; ld." + space + ".b32 %d, [%at+4]; }",
         "b32 = b32",
         {{77, 77}}},
        {at + "st." + space + ".b32 [%at+4], %a; cvta." + space + ".u64 %to, %at; ld.b32 %d, [%to+4]; }",
         "b32 = b32",
         {{78, 78}}},
        {at + "cvta." + space + ".u64 %to, %at; cvta.to." + space + ".u64 %to, %to; setp.eq.u64 %d, %to, %at; }",
         "pred =",
         {{{}, 1}}},
        {at + "cvta." + space + ".u64 %to, %at; isspacep." + space + " %d, %to; isspacep." +
             (space == "shared" ? "local" : "shared") + " %e, %to; }",
         "pred pred =",
         {{{}, {1, 0}}}},
    });
  }
}

TEST(PtxMemory, OrdersAndScopesLeaveTheValueAlone) {
  std::vector<Instruction> table;
  for (const char* const load : {"ld.weak.global",
                                 "ld.volatile.global",
                                 "ld.relaxed.cta.global",
                                 "ld.relaxed.gpu.global",
                                 "ld.relaxed.sys.global",
                                 "ld.acquire.cta.global",
                                 "ld.acquire.gpu.global",
                                 "ld.acquire.sys.global",
                                 "ld.acquire.cluster.global",
                                 "ld.acquire.gpu",
                                 "ld.volatile",
                                 "ld.mmio.relaxed.sys.global",
                                 "ld.global.nc",
                                 "ld.global.nc.L1::no_allocate.L2::128B",
                                 "ldu.global",
                                 "ld.global.ca",
                                 "ld.global.cg",
                                 "ld.global.cs",
                                 "ld.global.lu",
                                 "ld.global.cv",
                                 "ld.global.L1::evict_last",
                                 "ld.global.L2::64B"}) {
    table.push_back({std::string(load) + ".u32 %d, [%in];", "b32 = b64", {{kBytes, 0xb5a69788u}}});
    table.push_back({std::string(load) + ".u64 %d, [%in];", "b64 = b64", {{kBytes, kBytes}}});
  }
  for (const char* const store :
       {"st.weak.global", "st.volatile.global", "st.relaxed.cta.global", "st.relaxed.gpu.global",
        "st.relaxed.sys.global", "st.release.cta.global", "st.release.gpu.global", "st.release.sys.global",
        "st.release.gpu", "st.volatile", "st.mmio.relaxed.sys.global", "st.global.wb", "st.global.cg", "st.global.cs",
        "st.global.wt", "st.global.L1::no_allocate"}) {
    table.push_back({std::string(store) + ".u32 [%out], %a; ld.global.u32 %d, [%out];", "b32 = b32", {{7, 7}}});
    table.push_back(
        {std::string(store) + ".u64 [%out], %a; ld.global.u64 %d, [%out];", "b64 = b64", {{kBytes, kBytes}}});
  }
  table.push_back({"ld.global.nc.v4.b32 {%d, %e, %g, %h}, [%in];",
                   "b32 b32 b32 b32 = b64 b64",
                   {{{0x0000000200000001u, 0x0000000400000003u}, {1, 2, 3, 4}}}});
  table.push_back({"ld.volatile.global.v2.u32 {%d, %e}, [%in];", "b32 b32 = b64", {{0x0000000200000001u, {1, 2}}}});
  expectResults(table);
}

TEST(PtxMemory, SharedMemoryHasOrdersToo) {
  std::vector<Instruction> table;
  for (const char* const load :
       {"ld.volatile.shared", "ld.relaxed.cta.shared", "ld.acquire.cta.shared", "ld.shared::cta"}) {
    for (const char* const store :
         {"st.volatile.shared", "st.relaxed.cta.shared", "st.release.cta.shared", "st.shared::cta"}) {
      table.push_back({"{ " + slotIn("shared") + store + ".u32 [%at+8], %a; " + load + ".u32 %d, [%at+8]; }",
                       "b32 = b32",
                       {{7, 7}, {-1, -1}}});
    }
  }
  expectResults(table);
}

TEST(PtxMemory, FencesAndHintsDoNothingToValues) {
  std::vector<Instruction> table;
  for (const char* const code :
       {"prefetch.global.L1 [%in];", "prefetch.global.L2 [%in];", "prefetch.L1 [%in];", "prefetchu.L1 [%in];",
        "prefetch.global.L2::evict_last [%in];", "applypriority.global.L2::evict_normal [%in], 128;", "membar.cta;",
        "membar.gl;", "membar.sys;", "fence.acq_rel.cta;", "fence.acq_rel.gpu;", "fence.acq_rel.sys;", "fence.sc.gpu;",
        "fence.sc.sys;", "fence.proxy.alias;", "fence.sc.cta;", "nanosleep.u32 20;", "pmevent 1;"}) {
    table.push_back({std::string(code) + " ld.global.u64 %d, [%in];", "b64 = b64", {{kBytes, kBytes}}});
  }
  table.push_back(
      {"{ .reg .b64 %policy; createpolicy.fractional.L2::evict_last.b64 %policy, 1.0;"
       " ld.global.L2::cache_hint.u64 %d, [%in], %policy;"
       " st.global.L2::cache_hint.u64 [%out], %d, %policy; }",
       "b64 = b64",
       {{kBytes, kBytes}}});
  expectResults(table);
}

TEST(PtxMemory, ParametersOfKernelsLieWhereTheProgramSays) {
  Program program = Program::of(
      ".visible .entry mixed(.param .u8 byte, .param .align 8 .b8 record[20], .param .f32 number, .param .u64 to)\n{\n"
      ".reg .u64 %to; .reg .u32 %v, %w; .reg .f32 %f; .reg .u64 %l;\nld.param.u64 %to, [to];\n"
      "ld.param.u8 %v, [byte];\nst.global.u32 [%to], %v;\nld.param.u64 %l, [record+8];\nst.global.u64 [%to+8], %l;\n"
      "ld.param.v2.u32 {%v, %w}, [record];\nst.global.v2.u32 [%to+16], {%w, %v};\nld.param.s16 %v, [record+16];\n"
      "st.global.u32 [%to+4], %v;\nld.param.f32 %f, [number];\nst.global.f32 [%to+24], %f;\nret;\n}\n");
  ASSERT_NE(program.get(), nullptr) << program.why();
  const PtxFunction* const function = program.function("mixed");
  ASSERT_NE(function, nullptr);
  ASSERT_EQ(function->paramCount, 4u);
  const std::uint32_t offsets[] = {0, 8, 28, 32}, bytes[] = {1, 20, 4, 8};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(function->params[i].offset, offsets[i]) << i;
    EXPECT_EQ(function->params[i].bytes, bytes[i]) << i;
  }
  struct {
    std::uint8_t byte = 200;
    alignas(8) std::uint32_t first = 11;
    std::uint32_t second = 12;
    std::uint64_t third = kBytes;
    std::int16_t fourth = -5;
    alignas(4) float number = 2.5f;
    std::uint32_t* to = nullptr;
  } params;
  std::uint32_t out[8] = {};
  params.to = out;
  ASSERT_EQ(function->paramBytes, sizeof(params));
  program.runWith("mixed", {}, &params, sizeof(params));
  EXPECT_EQ(out[0], 200u);
  EXPECT_EQ(out[1], static_cast<std::uint32_t>(-5));
  EXPECT_EQ(out[2] | std::uint64_t{out[3]} << 32, kBytes);
  EXPECT_EQ(out[4], 12u);
  EXPECT_EQ(out[5], 11u);
  EXPECT_EQ(std::bit_cast<float>(out[6]), 2.5f);
}

}  // namespace
}  // namespace tutti::softgpu::test
