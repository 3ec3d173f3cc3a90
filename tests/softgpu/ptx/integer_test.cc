// Arithmetic of integers: the expected values are those of 128-bit arithmetic, cut or clamped.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "softgpu/ptx/cases.h"

namespace tutti::softgpu::test {
namespace {

template <typename T>
constexpr int kWidth = sizeof(T) * 8;

template <typename T>
std::string nameOf() {
  return (std::is_signed_v<T> ? "s" : "u") + std::to_string(kWidth<T>);
}

Wide magnitude(Wide value) {
  return value < 0 ? -value : value;
}

/// What all integers of 16, 32 and 64 bits have.
template <typename T>
void addArithmetic(std::vector<Instruction>& table) {
  const std::string t = nameOf<T>(), two = t + " = " + t + " " + t, three = two + " " + t;
  table.push_back({"add." + t + " %d, %a, %b;", two, integerPairs<T>([](Wide a, Wide b) { return a + b; })});
  table.push_back({"sub." + t + " %d, %a, %b;", two, integerPairs<T>([](Wide a, Wide b) { return a - b; })});
  table.push_back({"mul.lo." + t + " %d, %a, %b;", two, integerPairs<T>([](Wide a, Wide b) { return a * b; })});
  table.push_back(
      {"mul.hi." + t + " %d, %a, %b;", two, integerPairs<T>([](Wide a, Wide b) { return a * b >> kWidth<T>; })});
  table.push_back(
      {"mad.lo." + t + " %d, %a, %b, %c;", three, integerTriples<T>([](Wide a, Wide b, Wide c) { return a * b + c; })});
  table.push_back({"mad.hi." + t + " %d, %a, %b, %c;", three,
                   integerTriples<T>([](Wide a, Wide b, Wide c) { return (a * b >> kWidth<T>)+c; })});
  table.push_back({"min." + t + " %d, %a, %b;", two, integerPairs<T>([](Wide a, Wide b) { return std::min(a, b); })});
  table.push_back({"max." + t + " %d, %a, %b;", two, integerPairs<T>([](Wide a, Wide b) { return std::max(a, b); })});
  table.push_back({"sad." + t + " %d, %a, %b, %c;", three,
                   integerTriples<T>([](Wide a, Wide b, Wide c) { return c + magnitude(a - b); })});
}

TEST(PtxInteger, SumsAndProductsOf16BitsWrap) {
  std::vector<Instruction> table;
  addArithmetic<std::uint16_t>(table);
  addArithmetic<std::int16_t>(table);
  expectResults(table);
}

TEST(PtxInteger, SumsAndProductsOf32BitsWrap) {
  std::vector<Instruction> table;
  addArithmetic<std::uint32_t>(table);
  addArithmetic<std::int32_t>(table);
  expectResults(table);
}

TEST(PtxInteger, SumsAndProductsOf64BitsWrap) {
  std::vector<Instruction> table;
  addArithmetic<std::uint64_t>(table);
  addArithmetic<std::int64_t>(table);
  // The product of the two largest has 128 bits, one more than Wide has beside its sign.
  for (Instruction& row : table) {
    if (row.code.find(".hi.u64") == std::string::npos) continue;
    for (Case& each : row.cases) {
      const auto a = static_cast<UnsignedWide>(each.operands[0].bits);
      const std::uint64_t addend = row.code.starts_with("mad") ? each.operands[2].bits : 0;
      each.results = Word(static_cast<std::uint64_t>(a * each.operands[1].bits >> 64) + addend);
    }
  }
  expectResults(table);
}

template <typename T>
void addWide(std::vector<Instruction>& table) {
  const std::string t = nameOf<T>(), wide = std::string(1, t[0]) + std::to_string(2 * kWidth<T>);
  table.push_back({"mul.wide." + t + " %d, %a, %b;", wide + " = " + t + " " + t,
                   integerPairs<T>([](Wide a, Wide b) { return a * b; })});
  table.push_back({"mad.wide." + t + " %d, %a, %b, %c;", wide + " = " + t + " " + t + " " + wide,
                   triples(edges<T>(), std::vector<std::int64_t>{0, 1, -1, 0x7fffffff, std::int64_t{1} << 62},
                           [](T a, T b, std::int64_t c) { return static_cast<std::uint64_t>(Wide{a} * b + c); })});
}

TEST(PtxInteger, WideProductsKeepAllBits) {
  std::vector<Instruction> table;
  addWide<std::uint16_t>(table);
  addWide<std::int16_t>(table);
  addWide<std::uint32_t>(table);
  addWide<std::int32_t>(table);
  expectResults(table);
}

/// The low 24 bits of `value`, extended by their sign or by zeros.
Wide low24(Wide value, bool isSigned) {
  const auto low = static_cast<std::int64_t>(value & 0xffffff);
  return isSigned && low >= 0x800000 ? low - 0x1000000 : low;
}

template <typename T>
void add24(std::vector<Instruction>& table) {
  constexpr bool kSigned = std::is_signed_v<T>;
  const std::string t = nameOf<T>(), two = t + " = " + t + " " + t, three = two + " " + t;
  const auto product = [](Wide a, Wide b) { return low24(a, kSigned) * low24(b, kSigned); };
  table.push_back({"mul24.lo." + t + " %d, %a, %b;", two, integerPairs<T>(product)});
  table.push_back(
      {"mul24.hi." + t + " %d, %a, %b;", two, integerPairs<T>([=](Wide a, Wide b) { return product(a, b) >> 16; })});
  table.push_back({"mad24.lo." + t + " %d, %a, %b, %c;", three,
                   integerTriples<T>([=](Wide a, Wide b, Wide c) { return product(a, b) + c; })});
  table.push_back({"mad24.hi." + t + " %d, %a, %b, %c;", three,
                   integerTriples<T>([=](Wide a, Wide b, Wide c) { return (product(a, b) >> 16) + c; })});
}

TEST(PtxInteger, ProductsOf24BitsIgnoreTheUpperBits) {
  std::vector<Instruction> table;
  add24<std::uint32_t>(table);
  add24<std::int32_t>(table);
  expectResults(table);
}

template <typename T>
void addDivision(std::vector<Instruction>& table) {
  const std::string t = nameOf<T>(), two = t + " = " + t + " " + t;
  std::vector<Case> quotients, remainders;
  for (const T a : edges<T>()) {
    for (const T b : edges<T>()) {
      if (b == 0 || Wide{a} / b > std::numeric_limits<T>::max()) continue;  // unspecified
      quotients.push_back({{a, b}, static_cast<T>(Wide{a} / b)});
      remainders.push_back({{a, b}, static_cast<T>(Wide{a} % b)});
    }
  }
  table.push_back({"div." + t + " %d, %a, %b;", two, quotients});
  table.push_back({"rem." + t + " %d, %a, %b;", two, remainders});
}

TEST(PtxInteger, DivisionTruncatesAndTheRemainderHasTheDividendsSign) {
  std::vector<Instruction> table;
  addDivision<std::uint16_t>(table);
  addDivision<std::int16_t>(table);
  addDivision<std::uint32_t>(table);
  addDivision<std::int32_t>(table);
  addDivision<std::uint64_t>(table);
  addDivision<std::int64_t>(table);
  table.push_back({"div.s32 %d, %a, 7;", "s32 = s32", {{-20, -2}, {20, 2}, {-7, -1}, {-6, 0}}});
  table.push_back({"rem.s32 %d, %a, 7;", "s32 = s32", {{-20, -6}, {20, 6}, {-7, 0}, {-6, -6}}});
  expectResults(table);
}

template <typename T>
void addIntegerSigns(std::vector<Instruction>& table) {
  const std::string t = nameOf<T>(), one = t + " = " + t;
  auto values = edges<T>();
  table.push_back({"neg." + t + " %d, %a;", one, singles(values, [](T a) { return static_cast<T>(-Wide{a}); })});
  std::erase(values, std::numeric_limits<T>::min());  // has no magnitude
  table.push_back({"abs." + t + " %d, %a;", one, singles(values, [](T a) { return static_cast<T>(magnitude(a)); })});
}

TEST(PtxInteger, SignsAreTakenAwayAndTurned) {
  std::vector<Instruction> table;
  addIntegerSigns<std::int16_t>(table);
  addIntegerSigns<std::int32_t>(table);
  addIntegerSigns<std::int64_t>(table);
  expectResults(table);
}

TEST(PtxInteger, SaturatingOnesStopAtTheEndsOf32Bits) {
  using S = std::int32_t;
  expectResults({
      {"add.sat.s32 %d, %a, %b;", "s32 = s32 s32", integerPairs<S>([](Wide a, Wide b) { return clampTo<S>(a + b); })},
      {"sub.sat.s32 %d, %a, %b;", "s32 = s32 s32", integerPairs<S>([](Wide a, Wide b) { return clampTo<S>(a - b); })},
      {"mad.hi.sat.s32 %d, %a, %b, %c;", "s32 = s32 s32 s32",
       integerTriples<S>([](Wide a, Wide b, Wide c) { return clampTo<S>((a * b >> 32) + c); })},
      {"mad24.hi.sat.s32 %d, %a, %b, %c;", "s32 = s32 s32 s32", integerTriples<S>([](Wide a, Wide b, Wide c) {
         return clampTo<S>((low24(a, true) * low24(b, true) >> 16) + c);
       })},
  });
}

TEST(PtxInteger, MinimumAndMaximumOfReluAreNotNegative) {
  using S = std::int32_t;
  expectResults({
      {"min.relu.s32 %d, %a, %b;", "s32 = s32 s32",
       integerPairs<S>([](Wide a, Wide b) { return std::max<Wide>(std::min(a, b), 0); })},
      {"max.relu.s32 %d, %a, %b;", "s32 = s32 s32",
       integerPairs<S>([](Wide a, Wide b) { return std::max<Wide>(std::max(a, b), 0); })},
  });
}

TEST(PtxInteger, PairsOf16BitsAreWorkedOnSeparately) {
  const std::vector<Case> sums = {
      {{0x0001ffffu, 0x00010001u}, 0x00020000u}, {{0x7fff8000u, 0x00018000u}, 0x80000000u}, {{0u, 0xffffffffu}, -1}};
  expectResults({
      {"add.u16x2 %d, %a, %b;", "b32 = b32 b32", sums},
      {"add.s16x2 %d, %a, %b;", "b32 = b32 b32", sums},
      {"min.u16x2 %d, %a, %b;", "b32 = b32 b32", {{{0x0001ffffu, 0xffff0001u}, 0x00010001u}}},
      {"max.u16x2 %d, %a, %b;", "b32 = b32 b32", {{{0x0001ffffu, 0xffff0001u}, 0xffffffffu}}},
      {"min.s16x2 %d, %a, %b;", "b32 = b32 b32", {{{0x0001ffffu, 0xffff0001u}, 0xffffffffu}}},
      {"max.s16x2 %d, %a, %b;", "b32 = b32 b32", {{{0x0001ffffu, 0xffff0001u}, 0x00010001u}}},
      {"max.s16x2.relu %d, %a, %b;", "b32 = b32 b32", {{{0xfffe0005u, 0xffff0003u}, 0x00000005u}}},
  });
}

TEST(PtxInteger, ImmediateOperandsAreOfTheInstructionsType) {
  expectResults({
      {"add.s32 %d, %a, -1;", "s32 = s32", {{1, 0}, {0, -1}}},
      {"add.s64 %d, %a, -1;", "s64 = s64", {{1, 0}, {0, -1}}},
      {"add.u32 %d, %a, 0xffffffff;", "u32 = u32", {{1, 0}}},
      {"and.b32 %d, %a, 0b1010;", "b32 = b32", {{7, 2}}},
      {"add.u32 %d, %a, 017;", "u32 = u32", {{1, 16}}},
      {"add.u64 %d, %a, 0x8000000000000000U;", "u64 = u64", {{1, 0x8000000000000001u}}},
  });
}

TEST(PtxInteger, ConstantExpressionsAreThoseOfC) {
  expectResults({
      {"mov.u32 %d, (3 + 4) * 2 - 0x10;", "u32 =", {{{}, -2}}},
      {"mov.u32 %d, 1 << 5 | 3;", "u32 =", {{{}, 35}}},
      {"mov.u32 %d, 7 > 3 ? 10 : 20;", "u32 =", {{{}, 10}}},
      {"mov.s32 %d, !5 + ~0;", "s32 =", {{{}, -1}}},
      {"mov.u32 %d, 17 % 5 + 17 / 5;", "u32 =", {{{}, 5}}},
      {"mov.u32 %d, 0xff & 0x3c ^ 1;", "u32 =", {{{}, 0x3d}}},
  });
}

}  // namespace
}  // namespace tutti::softgpu::test
