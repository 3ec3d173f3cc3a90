// Atomic operations: what they return, what they leave, and that none of many threads' is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "softgpu/ptx/cases.h"

namespace tutti::softgpu::test {
namespace {

const std::string kSpaces[] = {"global", "shared", ""};

/// Code around `atomic`, which acts on [%at]; the word there was %a, and becomes a second result %e.
std::string around(const std::string& space, const std::string& type, const std::string& atomic) {
  const std::string dot = space.empty() ? "" : "." + space;
  const std::string at = space == "shared" ? ".reg .u32 %at; .shared .align 16 .b8 slots[256]; mov.u32 %at, slots;"
                                             " mad.lo.u32 %at, %index, 8, %at; "
                                           : ".reg .u64 %at; mov.u64 %at, %out; ";
  return "{ " + at + "st" + dot + "." + type + " [%at], %a; " + atomic + " ld" + dot + "." + type + " %e, [%at]; }";
}

template <typename T, typename F>
void addRows(std::vector<Instruction>& table, const std::string& operation, const std::string& type, F function) {
  std::vector<Case> both, left;
  for (const T a : edges<T>()) {
    for (const T b : edges<T>()) {
      both.push_back({{a, b}, {a, static_cast<T>(function(a, b))}});
      left.push_back({{a, b}, {Word(0), static_cast<T>(function(a, b))}});
    }
  }
  for (const std::string& space : kSpaces) {
    const std::string name = (space.empty() ? "" : "." + space) + "." + operation + "." + type;
    table.push_back(
        {around(space, type, "atom" + name + " %d, [%at], %b;"), type + " " + type + " = " + type + " " + type, both});
    if (operation == "exch") continue;
    table.push_back({around(space, type, "mov.b" + type.substr(1) + " %d, 0; red" + name + " [%at], %b;"),
                     type + " " + type + " = " + type + " " + type, left});
  }
}

template <typename T>
void addOrder(std::vector<Instruction>& table, const std::string& type) {
  addRows<T>(table, "min", type, [](T a, T b) { return std::min(a, b); });
  addRows<T>(table, "max", type, [](T a, T b) { return std::max(a, b); });
}

template <typename T>
void addAtomicLogic(std::vector<Instruction>& table, const std::string& type) {
  addRows<T>(table, "and", type, [](T a, T b) { return a & b; });
  addRows<T>(table, "or", type, [](T a, T b) { return a | b; });
  addRows<T>(table, "xor", type, [](T a, T b) { return a ^ b; });
  addRows<T>(table, "exch", type, [](T, T b) { return b; });
}

TEST(PtxAtomic, SumsAndExtremesReturnWhatWasThere) {
  std::vector<Instruction> table;
  const auto sum = [](auto a, auto b) { return static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b); };
  addRows<std::uint32_t>(table, "add", "u32", sum);
  addRows<std::int32_t>(table, "add", "s32", sum);
  addRows<std::uint64_t>(table, "add", "u64", sum);
  addOrder<std::uint32_t>(table, "u32");
  addOrder<std::int32_t>(table, "s32");
  addOrder<std::uint64_t>(table, "u64");
  addOrder<std::int64_t>(table, "s64");
  expectResults(table);
}

TEST(PtxAtomic, LogicAndExchangeReturnWhatWasThere) {
  std::vector<Instruction> table;
  addAtomicLogic<std::uint32_t>(table, "b32");
  addAtomicLogic<std::uint64_t>(table, "b64");
  expectResults(table);
}

TEST(PtxAtomic, IncrementAndDecrementWrapAtTheirOperand) {
  using U = std::uint32_t;
  std::vector<Instruction> table;
  addRows<U>(table, "inc", "u32", [](U a, U b) { return a >= b ? 0 : a + 1; });
  addRows<U>(table, "dec", "u32", [](U a, U b) { return a == 0 || a > b ? b : a - 1; });
  expectResults(table);
}

TEST(PtxAtomic, CompareAndSwapWritesOnlyWhereItIsEqual) {
  std::vector<Instruction> table;
  for (const std::string& space : kSpaces) {
    for (const std::string type : {"b16", "b32", "b64"}) {
      const std::string name = "atom" + (space.empty() ? "" : "." + space) + ".cas." + type;
      table.push_back({around(space, type, name + " %d, [%at], %b, %c;"),
                       type + " " + type + " = " + type + " " + type + " " + type,
                       {{{5, 5, 7}, {5, 7}}, {{5, 6, 7}, {5, 5}}, {{0, 0, -1}, {0, -1}}, {{-1, -1, 0}, {-1, 0}}}});
    }
  }
  expectResults(table);
}

TEST(PtxAtomic, CompareAndSwapOf16BitsLeavesTheNeighbourAlone) {
  expectResults({{"st.global.u32 [%out], %a; atom.global.cas.b16 %d, [%out+2], %b, %c; ld.global.u32 %e, [%out];",
                  "b16 b32 = b32 b16 b16",
                  {{{0x12345678, 0x1234, 0xabcd}, {0x1234, 0xabcd5678u}}}}});
}

TEST(PtxAtomic, SumsOfNumbers) {
  const auto two = [](double low, double high) { return packed(half(low), half(high)); };
  const auto twoB = [](double low, double high) { return packed(bfloat(low), bfloat(high)); };
  std::vector<Instruction> table;
  for (const std::string& space : kSpaces) {
    const std::string dot = space.empty() ? "" : "." + space;
    const auto row = [&](const std::string& operation, const std::string& type, const std::string& types,
                         std::vector<Case> cases) {
      table.push_back(
          {around(space, type, "atom" + dot + "." + operation + " %d, [%at], %b;"), types, std::move(cases)});
    };
    row("add.f32", "f32", "f32 f32 = f32 f32", {{{1.5f, 2.25f}, {1.5f, 3.75f}}, {{1.f, 0x1p-24f}, {1.f, 1.f}}});
    row("add.f64", "f64", "f64 f64 = f64 f64", {{{1.5, 2.25}, {1.5, 3.75}}, {{0.1, 0.2}, {0.1, 0.1 + 0.2}}});
    row("add.noftz.f16x2", "b32", "b32 b32 = b32 b32", {{{two(1, 2), two(3, -4)}, {two(1, 2), two(4, -2)}}});
    row("add.noftz.bf16x2", "b32", "b32 b32 = b32 b32", {{{twoB(1, 2), twoB(3, -4)}, {twoB(1, 2), twoB(4, -2)}}});
    row("add.noftz.f16", "b16", "b16 b16 = b16 b16", {{{half(1), half(0.5)}, {half(1), half(1.5)}}});
    row("add.noftz.bf16", "b16", "b16 b16 = b16 b16", {{{bfloat(1), bfloat(0.5)}, {bfloat(1), bfloat(1.5)}}});
  }
  table.push_back({around("global", "f32", "mov.f32 %d, 0f00000000; red.global.add.f32 [%at], %b;"),
                   "f32 f32 = f32 f32",
                   {{{1.5f, 2.25f}, {0.f, 3.75f}}}});
  table.push_back({around("global", "f64", "mov.f64 %d, 0d0000000000000000; red.global.add.f64 [%at], %b;"),
                   "f64 f64 = f64 f64",
                   {{{1.5, 2.25}, {0.0, 3.75}}}});
  expectResults(table);
}

TEST(PtxAtomic, OrdersAndScopesLeaveTheResultAlone) {
  std::vector<Instruction> table;
  for (const std::string order : {".relaxed", ".acquire", ".release", ".acq_rel"}) {
    for (const std::string scope : {".cta", ".cluster", ".gpu", ".sys"}) {
      table.push_back({around("global", "u32", "atom" + order + scope + ".global.add.u32 %d, [%at], %b;"),
                       "u32 u32 = u32 u32",
                       {{{5, 7}, {5, 12}}}});
      table.push_back({around("shared", "b32", "atom" + order + scope + ".shared.exch.b32 %d, [%at], %b;"),
                       "b32 b32 = b32 b32",
                       {{{5, 7}, {5, 7}}}});
      if (order == ".acquire" || order == ".acq_rel") continue;
      table.push_back({around("global", "u32", "mov.u32 %d, 0; red" + order + scope + ".global.add.u32 [%at], %b;"),
                       "u32 u32 = u32 u32",
                       {{{5, 7}, {0, 12}}}});
    }
  }
  expectResults(table);
}

TEST(PtxAtomic, Of128Bits) {
  const std::string before =
      "{ .reg .b128 %x, %y, %z; .reg .u64 %at; .shared .align 16 .b8 slots[512]; .reg .u32 %s;"
      " mov.u32 %s, slots; mad.lo.u32 %s, %index, 16, %s; cvt.u64.u32 %at, %s;"
      " st.shared.v2.b64 [%at], {%a, %b}; mov.b128 %y, {%c, %f}; ";
  const std::string after = " mov.b128 {%d, %e}, %x; ld.shared.v2.b64 {%g, %h}, [%at]; }";
  expectResults({
      {before + "atom.shared.exch.b128 %x, [%at], %y;" + after,
       "b64 b64 b64 b64 = b64 b64 b64 b64",
       {{{1, 2, 3, 4}, {1, 2, 3, 4}}}},
      {before + "mov.b128 %z, {7, 8}; atom.shared.cas.b128 %x, [%at], %y, %z;" + after,
       "b64 b64 b64 b64 = b64 b64 b64 b64",
       {{{1, 2, 3, 4}, {1, 2, 1, 2}}, {{1, 2, 1, 4}, {1, 2, 1, 2}}, {{1, 2, 1, 2}, {1, 2, 7, 8}}}},
  });
}

TEST(PtxAtomic, VectorsAreAddedOrRefusedByName) {
  Program program = Program::of(
      kernelText("vectors",
                 ".reg .f32 %x, %y;\nmov.f32 %x, 0f3f800000;\nst.global.v2.f32 [%out], {%x, %x};\n"
                 "atom.global.v2.f32.add {%x, %y}, [%out], {%x, %x};\nred.global.add.v2.f32 [%out], {%x, %y};\n"));
  ASSERT_NE(program.get(), nullptr) << program.why();
  if (program.kernel("vectors") == nullptr) {
    EXPECT_NE(program.why().find("v2"), std::string::npos) << program.why();
    return;
  }
  const auto words = program.run("vectors", {}, {}, 1);
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0], 0x4040000040400000u) << "1 + 1 + 1 in both";
}

TEST(PtxAtomic, NoneOfManyThreadsIsLost) {
  const std::string body = R"(
.shared .align 8 .b32 sum;
.reg .u32 %old; .reg .pred %first; .reg .u64 %mine;
setp.eq.u32 %first, %index, 0;
@%first st.shared.u32 [sum], 0;
bar.sync 0;
atom.shared.add.u32 %old, [sum], 3;
mul.wide.u32 %mine, %index, 8;
add.u64 %mine, %out, %mine;
cvt.u64.u32 %mine, %old;
red.global.or.b64 [%out], %mine;
atom.global.add.u32 %old, [%out+8], 1;
atom.global.max.u32 %old, [%out+16], %index;
bar.sync 0;
ld.shared.u32 %old, [sum];
@%first st.global.u32 [%out+24], %old;
)";
  const std::string clear =
      ".reg .pred %zero; setp.eq.u32 %zero, %index, 0;\n@%zero st.global.v2.u64 [%out], {0, 0};\n"
      "@%zero st.global.v2.u64 [%out+16], {0, 0};\nbar.sync 0;\n";
  const auto words = runBody(clear + body, 96, {}, 4);
  ASSERT_EQ(words.size(), 4u);
  std::uint64_t all = 0;
  for (std::uint64_t i = 0; i < 96; ++i) all |= 3 * i;
  EXPECT_EQ(words[0], all) << "every thread saw another sum";
  EXPECT_EQ(words[1], 96u);
  EXPECT_EQ(words[2], 95u);
  EXPECT_EQ(words[3], 288u);
}

TEST(PtxAtomic, ALockOfCompareAndSwapLetsOneIn) {
  const std::string body = R"(
.reg .pred %zero, %taken; .reg .u32 %old, %value;
setp.eq.u32 %zero, %index, 0;
@%zero st.global.v2.u64 [%out], {0, 0};
bar.sync 0;
AGAIN:
atom.acquire.gpu.global.cas.b32 %old, [%out], 0, 1;
setp.ne.u32 %taken, %old, 0;
@%taken bra AGAIN;
ld.relaxed.gpu.global.u32 %value, [%out+8];
add.u32 %value, %value, 1;
st.relaxed.gpu.global.u32 [%out+8], %value;
atom.release.gpu.global.exch.b32 %old, [%out], 0;
)";
  const auto words = runBody(body, 64, {}, 2);
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0], 0u);
  EXPECT_EQ(words[1], 64u);
}

}  // namespace
}  // namespace tutti::softgpu::test
