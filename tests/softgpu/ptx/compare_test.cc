// Comparisons and selections, of integers and of numbers that may be NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "softgpu/ptx/cases.h"

namespace tutti::softgpu::test {
namespace {

template <typename T>
struct Comparison {
  const char* name;
  std::function<bool(T, T)> holds;
};

template <typename T>
std::vector<Comparison<T>> equality() {
  return {{"eq", [](T a, T b) { return a == b; }}, {"ne", [](T a, T b) { return a != b; }}};
}

template <typename T>
std::vector<Comparison<T>> order() {
  auto all = equality<T>();
  all.push_back({"lt", [](T a, T b) { return a < b; }});
  all.push_back({"le", [](T a, T b) { return a <= b; }});
  all.push_back({"gt", [](T a, T b) { return a > b; }});
  all.push_back({"ge", [](T a, T b) { return a >= b; }});
  return all;
}

template <typename T>
std::vector<Comparison<T>> unsignedOrder() {
  auto all = order<T>();
  all.push_back({"lo", [](T a, T b) { return a < b; }});
  all.push_back({"ls", [](T a, T b) { return a <= b; }});
  all.push_back({"hi", [](T a, T b) { return a > b; }});
  all.push_back({"hs", [](T a, T b) { return a >= b; }});
  return all;
}

bool unordered(double a, double b) {
  return std::isnan(a) || std::isnan(b);
}

template <typename F>
std::vector<Comparison<F>> floatOrder() {
  std::vector<Comparison<F>> all;
  for (const Comparison<F>& each : order<F>()) {
    all.push_back({each.name, [=](F a, F b) { return !unordered(a, b) && each.holds(a, b); }});
    static const std::string kNames[] = {"equ", "neu", "ltu", "leu", "gtu", "geu"};
    all.push_back({kNames[all.size() / 2].c_str(), [=](F a, F b) { return unordered(a, b) || each.holds(a, b); }});
  }
  all.push_back({"num", [](F a, F b) { return !unordered(a, b); }});
  all.push_back({"nan", [](F a, F b) { return unordered(a, b); }});
  return all;
}

template <typename T>
void addSetp(std::vector<Instruction>& table, const std::string& type, const std::vector<Comparison<T>>& comparisons,
             const std::vector<T>& values) {
  for (const Comparison<T>& each : comparisons) {
    table.push_back({std::string("setp.") + each.name + "." + type + " %d, %a, %b;", "pred = " + type + " " + type,
                     pairs(values, [&](T a, T b) { return each.holds(a, b); })});
  }
}

TEST(PtxCompare, IntegersByTheirSign) {
  std::vector<Instruction> table;
  addSetp<std::int16_t>(table, "s16", order<std::int16_t>(), edges<std::int16_t>());
  addSetp<std::int32_t>(table, "s32", order<std::int32_t>(), edges<std::int32_t>());
  addSetp<std::int64_t>(table, "s64", order<std::int64_t>(), edges<std::int64_t>());
  expectResults(table);
}

TEST(PtxCompare, IntegersWithoutASign) {
  std::vector<Instruction> table;
  addSetp<std::uint16_t>(table, "u16", unsignedOrder<std::uint16_t>(), edges<std::uint16_t>());
  addSetp<std::uint32_t>(table, "u32", unsignedOrder<std::uint32_t>(), edges<std::uint32_t>());
  addSetp<std::uint64_t>(table, "u64", unsignedOrder<std::uint64_t>(), edges<std::uint64_t>());
  addSetp<std::uint16_t>(table, "b16", equality<std::uint16_t>(), edges<std::uint16_t>());
  addSetp<std::uint32_t>(table, "b32", equality<std::uint32_t>(), edges<std::uint32_t>());
  addSetp<std::uint64_t>(table, "b64", equality<std::uint64_t>(), edges<std::uint64_t>());
  expectResults(table);
}

TEST(PtxCompare, NumbersOrderedOrNot) {
  std::vector<Instruction> table;
  addSetp<float>(table, "f32", floatOrder<float>(), numbers<float>());
  addSetp<double>(table, "f64", floatOrder<double>(), numbers<double>());
  expectResults(table);
}

TEST(PtxCompare, FlushedNumbersAreZeros) {
  std::vector<Instruction> table;
  for (const Comparison<float>& each : floatOrder<float>()) {
    table.push_back({std::string("setp.") + each.name + ".ftz.f32 %d, %a, %b;", "pred = f32 f32",
                     pairs(numbers<float>(), [&](float a, float b) { return each.holds(flushed(a), flushed(b)); })});
  }
  expectResults(table);
}

bool combined(const std::string& how, bool a, bool b) {
  return how == "and" ? a && b : how == "or" ? a || b : a != b;
}

TEST(PtxCompare, ResultsAreCombinedWithAPredicate) {
  std::vector<Instruction> table;
  for (const std::string how : {"and", "or", "xor"}) {
    for (const bool negated : {false, true}) {
      std::vector<Case> one, two;
      for (const int a : {-1, 0, 1}) {
        for (const int c : {0, 1}) {
          const bool other = (c != 0) != negated;
          one.push_back({{a, 0, c}, combined(how, a < 0, other)});
          two.push_back({{a, 0, c}, {combined(how, a < 0, other), combined(how, !(a < 0), other)}});
        }
      }
      const std::string last = negated ? "!%c;" : "%c;";
      table.push_back({"setp.lt." + how + ".s32 %d, %a, %b, " + last, "pred = s32 s32 pred", one});
      table.push_back({"setp.lt." + how + ".s32 %d|%e, %a, %b, " + last, "pred pred = s32 s32 pred", two});
    }
  }
  expectResults(table);
}

TEST(PtxCompare, TheSecondResultIsTheOpposite) {
  const float nan = std::nanf("");
  expectResults({
      {"setp.lt.s32 %d|%e, %a, %b;", "pred pred = s32 s32", {{{1, 2}, {1, 0}}, {{2, 1}, {0, 1}}, {{1, 1}, {0, 1}}}},
      {"setp.lt.f32 %d|%e, %a, %b;", "pred pred = f32 f32", {{{1.f, 2.f}, {1, 0}}, {{nan, 1.f}, {0, 1}}}},
      {"setp.ltu.f32 %d|%e, %a, %b;", "pred pred = f32 f32", {{{1.f, 2.f}, {1, 0}}, {{nan, 1.f}, {1, 0}}}},
      {"setp.eq.f64 %d|%e, %a, %b;", "pred pred = f64 f64", {{{0.0, -0.0}, {1, 0}}, {{1.0, 2.0}, {0, 1}}}},
      {"setp.eq.s32 %d|_, %a, %b;", "pred = s32 s32", {{{1, 1}, 1}, {{1, 2}, 0}}},
  });
}

TEST(PtxCompare, SetGivesAllOnesOrOne) {
  const float nan = std::nanf("");
  const std::vector<Case> masks = {{{1, 2}, -1}, {{2, 1}, 0}, {{-1, 1}, -1}, {{1, 1}, 0}};
  const std::vector<Case> ones = {{{1, 2}, 1.0f}, {{2, 1}, 0.0f}, {{-1, 1}, 1.0f}};
  const std::vector<Case> floats = {{{1.f, 2.f}, -1}, {{nan, 2.f}, 0}, {{2.f, 1.f}, 0}};
  expectResults({
      {"set.lt.u32.s32 %d, %a, %b;", "u32 = s32 s32", masks},
      {"set.lt.s32.s32 %d, %a, %b;", "s32 = s32 s32", masks},
      {"set.lt.f32.s32 %d, %a, %b;", "f32 = s32 s32", ones},
      {"set.lo.u32.u32 %d, %a, %b;", "u32 = u32 u32", {{{1, -1}, -1}, {{-1, 1}, 0}}},
      {"set.eq.u32.u16 %d, %a, %b;", "u32 = u16 u16", {{{0x10001, 1}, -1}, {{2, 1}, 0}}},
      {"set.ne.u32.b64 %d, %a, %b;", "u32 = b64 b64", {{{std::uint64_t{1} << 40, 0}, -1}, {{0, 0}, 0}}},
      {"set.lt.u32.f32 %d, %a, %b;", "u32 = f32 f32", floats},
      {"set.geu.u32.f32 %d, %a, %b;", "u32 = f32 f32", {{{1.f, 2.f}, 0}, {{nan, 2.f}, -1}, {{2.f, 1.f}, -1}}},
      {"set.lt.f32.f64 %d, %a, %b;", "f32 = f64 f64", {{{1.0, 2.0}, 1.0f}, {{2.0, 1.0}, 0.0f}}},
      {"set.lt.and.u32.s32 %d, %a, %b, %c;", "u32 = s32 s32 pred", {{{1, 2, 1}, -1}, {{1, 2, 0}, 0}, {{3, 2, 1}, 0}}},
      {"set.lt.or.u32.s32 %d, %a, %b, !%c;", "u32 = s32 s32 pred", {{{3, 2, 1}, 0}, {{3, 2, 0}, -1}, {{1, 2, 1}, -1}}},
      {"set.lt.xor.f32.s32 %d, %a, %b, %c;", "f32 = s32 s32 pred", {{{1, 2, 1}, 0.f}, {{1, 2, 0}, 1.f}}},
      {"set.eq.ftz.u32.f32 %d, %a, %b;", "u32 = f32 f32", {{{1e-40f, 0.f}, -1}, {{1e-40f, 1e-30f}, 0}}},
  });
}

TEST(PtxSelect, ByPredicate) {
  const auto big = std::uint64_t{0x123456789abcdef0u};
  expectResults({
      {"selp.b16 %d, %a, %b, %c;", "b16 = b16 b16 pred", {{{1, 2, 1}, 1}, {{1, 2, 0}, 2}}},
      {"selp.s32 %d, %a, %b, %c;", "s32 = s32 s32 pred", {{{-1, 2, 1}, -1}, {{1, -2, 0}, -2}}},
      {"selp.u64 %d, %a, %b, %c;", "u64 = u64 u64 pred", {{{big, 2, 1}, big}, {{1, big, 0}, big}}},
      {"selp.f32 %d, %a, %b, %c;", "f32 = f32 f32 pred", {{{1.f, -0.f, 1}, 1.f}, {{1.f, -0.f, 0}, -0.f}}},
      {"selp.f64 %d, %a, %b, %c;", "f64 = f64 f64 pred", {{{1.0, 2.0, 1}, 1.0}, {{1.0, 2.0, 0}, 2.0}}},
      {"selp.b32 %d, 1, -1, %a;", "b32 = pred", {{1, 1}, {0, -1}}},
  });
}

TEST(PtxSelect, BySignOfTheThird) {
  const float nan = std::nanf("");
  expectResults({
      {"slct.u32.s32 %d, %a, %b, %c;", "u32 = u32 u32 s32", {{{1, 2, 0}, 1}, {{1, 2, 5}, 1}, {{1, 2, -1}, 2}}},
      {"slct.b64.s32 %d, %a, %b, %c;", "b64 = b64 b64 s32", {{{1, 2, 0}, 1}, {{1, 2, 0x80000000u}, 2}}},
      {"slct.b16.s32 %d, %a, %b, %c;", "b16 = b16 b16 s32", {{{1, 2, 0}, 1}, {{1, 2, -5}, 2}}},
      {"slct.f32.s32 %d, %a, %b, %c;", "f32 = f32 f32 s32", {{{1.f, 2.f, 0}, 1.f}, {{1.f, 2.f, -1}, 2.f}}},
      {"slct.u32.f32 %d, %a, %b, %c;",
       "u32 = u32 u32 f32",
       {{{1, 2, 0.f}, 1}, {{1, 2, -0.f}, 1}, {{1, 2, -1.f}, 2}, {{1, 2, nan}, 2}, {{1, 2, -1e-40f}, 2}}},
      {"slct.ftz.u32.f32 %d, %a, %b, %c;", "u32 = u32 u32 f32", {{{1, 2, -1e-40f}, 1}, {{1, 2, -1e-30f}, 2}}},
      {"slct.f64.f32 %d, %a, %b, %c;", "f64 = f64 f64 f32", {{{1.0, 2.0, 3.f}, 1.0}, {{1.0, 2.0, -3.f}, 2.0}}},
  });
}

TEST(PtxPredicate, GuardsAnInstruction) {
  expectResults({
      {"mov.u32 %d, 5; @%a mov.u32 %d, 6;", "u32 = pred", {{1, 6}, {0, 5}}},
      {"mov.u32 %d, 5; @!%a mov.u32 %d, 6;", "u32 = pred", {{1, 5}, {0, 6}}},
      {"mov.u32 %d, 5; @%a add.cc.u32 %e, -1, 1; addc.u32 %d, 0, 0;", "u32 u32 = pred", {{1, {1, 0}}}},
      {"setp.eq.s32 %d, 0, 0; @%a setp.eq.s32 %d, 1, 0;", "pred = pred", {{1, 0}, {0, 1}}},
      {"mov.u32 %d, 1; @%a bra LEFT; mov.u32 %d, 2; LEFT:", "u32 = pred", {{1, 1}, {0, 2}}},
      {"mov.u64 %d, 7; @!%a ld.global.u64 %d, [%b];", "u64 = pred u64", {{{1, 0}, 7}}},
  });
}

}  // namespace
}  // namespace tutti::softgpu::test
