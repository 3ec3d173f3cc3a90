// Arithmetic of f16 and bf16, alone and in pairs: what double precision says, rounded once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "softgpu/ptx/cases.h"

namespace tutti::softgpu::test {
namespace {

using Bits = std::uint16_t;

/// Zeros, numbers that round, the smallest that are normal and that are not, the largest.
std::vector<Bits> halfValues(Format format) {
  std::vector<Bits> all;
  const int lowest = 2 - (1 << (format.exponent - 1));
  const double largest = decode(format, (((1u << format.exponent) - 1) << format.fraction) - 1);
  for (const double value : {0.0, 1.0, 1.0 / 3, 1.0 + std::ldexp(1.0, -format.fraction), 2.5, 100.0, largest, kInf,
                             std::ldexp(1.0, lowest), std::ldexp(3.0, lowest - 3)}) {
    all.push_back(static_cast<Bits>(encode(format, value)));
    all.push_back(static_cast<Bits>(encode(format, -value)));
  }
  all.push_back(static_cast<Bits>(encode(format, kNan)));
  return all;
}

/// What one of the types has, with its words.
struct Kind {
  Format format;
  std::string type;

  std::string two() const { return type + " = " + type + " " + type; }
  std::string three() const { return two() + " " + type; }
  double flushed(double value) const {
    return std::fabs(value) < std::ldexp(1.0, 2 - (1 << (format.exponent - 1))) ? std::copysign(0.0, value) : value;
  }
  template <typename F>
  auto exact(F function) const {
    return [*this, function](auto... operands) {
      return static_cast<Bits>(encode(format, function(decode(format, operands)...)));
    };
  }
};

const Kind kF16{kHalf, "f16"}, kBf16{kBfloat, "bf16"};

double halfProduct(double a, double b) {
  return a * b;
}
double relu(double value) {
  return value > 0 ? value : std::isnan(value) ? kNan : 0;
}
double halfLeast(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
  return a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
}
double halfMost(double a, double b) {
  return -halfLeast(-a, -b);
}
double strict(double a, double b, double value) {
  return std::isnan(a) || std::isnan(b) ? kNan : value;
}

/// Sums of bf16 need more bits than a double has: what is lost must not decide a tie.
double halfFused(double a, double b, double c) {
  const double product = a * b, whole = product + c;
  if (!std::isfinite(whole)) return whole;
  const double part = whole - product, lost = (product - (whole - part)) + (c - part);
  if (lost == 0) return whole;
  return std::nextafter(whole, lost > 0 ? kInf : -kInf);
}

double halfSum(double a, double b) {
  return halfFused(a, 1, b);
}
double halfDifference(double a, double b) {
  return halfFused(a, 1, -b);
}

/// Without those whose sum is -0, of which the ISA does not say whether it counts as negative.
std::vector<Case> reluCases(const Kind& kind, const std::vector<Bits>& values) {
  auto cases = triples(values, values, kind.exact(halfFused));
  std::erase_if(cases, [](const Case& each) { return each.results[0].bits == 0x8000; });
  for (Case& each : cases) {
    const auto bits = static_cast<std::uint32_t>(each.results[0].bits);
    each.results = Word(encode(kind.format, relu(decode(kind.format, bits))));
  }
  return cases;
}

std::vector<Instruction> arithmetic(const Kind& kind) {
  const auto values = halfValues(kind.format);
  const std::string& t = kind.type;
  return {
      {"add.rn." + t + " %d, %a, %b;", kind.two(), pairs(values, kind.exact(halfSum))},
      {"sub.rn." + t + " %d, %a, %b;", kind.two(), pairs(values, kind.exact(halfDifference))},
      {"mul.rn." + t + " %d, %a, %b;", kind.two(), pairs(values, kind.exact(halfProduct))},
      {"fma.rn." + t + " %d, %a, %b, %c;", kind.three(), triples(values, values, kind.exact(halfFused))},
      {"fma.rn.relu." + t + " %d, %a, %b, %c;", kind.three(), reluCases(kind, values)},
      {"neg." + t + " %d, %a;", t + " = " + t, singles(values, [](Bits a) { return a ^ 0x8000; })},
      {"abs." + t + " %d, %a;", t + " = " + t, singles(values, [](Bits a) { return a & 0x7fff; })},
      {"min." + t + " %d, %a, %b;", kind.two(), pairs(values, kind.exact(halfLeast))},
      {"max." + t + " %d, %a, %b;", kind.two(), pairs(values, kind.exact(halfMost))},
      {"min.NaN." + t + " %d, %a, %b;", kind.two(),
       pairs(values, kind.exact([](double a, double b) { return strict(a, b, halfLeast(a, b)); }))},
      {"max.NaN." + t + " %d, %a, %b;", kind.two(),
       pairs(values, kind.exact([](double a, double b) { return strict(a, b, halfMost(a, b)); }))},
  };
}

TEST(PtxHalf, F16RoundsOnce) {
  expectResults(arithmetic(kF16));
}

TEST(PtxHalf, Bf16RoundsOnce) {
  expectResults(arithmetic(kBf16));
}

TEST(PtxHalf, F16RoundsToNearestWithoutAWord) {
  const auto values = halfValues(kHalf);
  expectResults({
      {"add.f16 %d, %a, %b;", kF16.two(), pairs(values, kF16.exact(halfSum))},
      {"sub.f16 %d, %a, %b;", kF16.two(), pairs(values, kF16.exact(halfDifference))},
      {"mul.f16 %d, %a, %b;", kF16.two(), pairs(values, kF16.exact(halfProduct))},
      {"add.f16 %d, %a, %b;",
       "b16 = b16 b16",
       {{{half(2048), half(1)}, half(2048)}, {{half(2048), half(3)}, half(2052)}}},
  });
}

TEST(PtxHalf, F16MaySaturateOrFlush) {
  const auto values = halfValues(kHalf);
  const auto flush = [](auto operation) {
    return kF16.exact([=](auto... x) { return kF16.flushed(decode(kHalf, half(operation(kF16.flushed(x)...)))); });
  };
  const auto saturate = [](auto operation) {
    return kF16.exact([=](auto... x) { return saturated(decode(kHalf, half(operation(x...)))); });
  };
  expectResults({
      {"add.ftz.f16 %d, %a, %b;", kF16.two(), pairs(values, flush(halfSum))},
      {"mul.ftz.f16 %d, %a, %b;", kF16.two(), pairs(values, flush(halfProduct))},
      {"fma.rn.ftz.f16 %d, %a, %b, %c;", kF16.three(), triples(values, values, flush(halfFused))},
      {"min.ftz.f16 %d, %a, %b;", kF16.two(), pairs(values, flush(halfLeast))},
      {"add.sat.f16 %d, %a, %b;", kF16.two(), pairs(values, saturate(halfSum))},
      {"sub.sat.f16 %d, %a, %b;", kF16.two(), pairs(values, saturate(halfDifference))},
      {"mul.sat.f16 %d, %a, %b;", kF16.two(), pairs(values, saturate(halfProduct))},
      {"fma.rn.sat.f16 %d, %a, %b, %c;", kF16.three(), triples(values, values, saturate(halfFused))},
  });
}

/// Cases of two numbers in each word: those of `cases`, and beside each the next.
std::vector<Case> paired(const std::vector<Case>& cases) {
  std::vector<Case> both;
  const auto join = [](const Words& low, const Words& high) {
    Words all;
    for (std::size_t i = 0; i < low.size(); ++i)
      all.push_back(Word(packed(static_cast<Bits>(low[i].bits), static_cast<Bits>(high[i].bits))));
    return all;
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& next = cases[(i + 1) % cases.size()];
    both.push_back({join(cases[i].operands, next.operands), join(cases[i].results, next.results)});
  }
  return both;
}

/// The same in pairs. NaN is left out: which one it is would have to be known.
std::vector<Instruction> inPairs(std::vector<Instruction> table, const Kind& kind) {
  for (Instruction& row : table) {
    for (std::size_t at; (at = row.code.find("." + kind.type + " ")) != std::string::npos;)
      row.code.replace(at, kind.type.size() + 2, "." + kind.type + "x2 ");
    row.types = row.cases.front().operands.size() == 1   ? "b32 = b32"
                : row.cases.front().operands.size() == 2 ? "b32 = b32 b32"
                                                         : "b32 = b32 b32 b32";
    std::erase_if(row.cases, [&](const Case& each) {
      return std::isnan(decode(kind.format, static_cast<std::uint32_t>(each.results[0].bits & 0xffff)));
    });
    row.cases = paired(row.cases);
  }
  return table;
}

TEST(PtxHalf, PairsOfF16AreWorkedOnSeparately) {
  expectResults(inPairs(arithmetic(kF16), kF16));
}

TEST(PtxHalf, PairsOfBf16AreWorkedOnSeparately) {
  expectResults(inPairs(arithmetic(kBf16), kBf16));
}

TEST(PtxHalf, XorOfSignsOfTheLesserAndTheGreater) {
  expectResults({
      {"min.xorsign.abs.f16 %d, %a, %b;",
       kF16.two(),
       {{{half(-1), half(2)}, half(-1)}, {{half(-3), half(-2)}, half(2)}}},
      {"max.xorsign.abs.f16 %d, %a, %b;",
       kF16.two(),
       {{{half(-1), half(2)}, half(-2)}, {{half(-3), half(-2)}, half(3)}}},
      {"max.xorsign.abs.bf16 %d, %a, %b;", kBf16.two(), {{{bfloat(-1), bfloat(2)}, bfloat(-2)}}},
      {"max.xorsign.abs.bf16x2 %d, %a, %b;",
       "b32 = b32 b32",
       {{{packed(bfloat(-1), bfloat(4)), packed(bfloat(2), bfloat(3))}, packed(bfloat(-2), bfloat(4))}}},
  });
}

TEST(PtxHalf, ComparisonsGivePredicatesOfBothNumbers) {
  const Bits one = half(1), two = half(2), nan = half(kNan);
  const auto b1 = bfloat(1), b2 = bfloat(2);
  expectResults({
      {"setp.lt.f16 %d, %a, %b;",
       "pred = f16 f16",
       {{{one, two}, 1}, {{two, one}, 0}, {{nan, one}, 0}, {{0, 0x8000}, 0}}},
      {"setp.neu.f16 %d, %a, %b;", "pred = f16 f16", {{{one, two}, 1}, {{nan, nan}, 1}, {{0, 0x8000}, 0}}},
      {"setp.ge.bf16 %d, %a, %b;", "pred = bf16 bf16", {{{b1, b2}, 0}, {{b2, b2}, 1}}},
      {"setp.lt.f16x2 %d|%e, %a, %b;",
       "pred pred = b32 b32",
       {{{packed(one, two), packed(two, one)}, {1, 0}}, {{packed(two, one), packed(one, two)}, {0, 1}}}},
      {"setp.gt.and.bf16x2 %d|%e, %a, %b, %c;",
       "pred pred = b32 b32 pred",
       {{{packed(b2, b2), packed(b1, b1), 1}, {1, 1}},
        {{packed(b2, b1), packed(b1, b1), 1}, {1, 0}},
        {{packed(b2, b2), packed(b1, b1), 0}, {0, 0}}}},
      {"set.lt.f16.f16 %d, %a, %b;", "f16 = f16 f16", {{{one, two}, one}, {{two, one}, 0}}},
      {"set.lt.u32.f16 %d, %a, %b;", "u32 = f16 f16", {{{one, two}, -1}, {{two, one}, 0}}},
      {"set.lt.f16x2.f16x2 %d, %a, %b;", "b32 = b32 b32", {{{packed(one, two), packed(two, one)}, packed(one, 0)}}},
  });
}

}  // namespace
}  // namespace tutti::softgpu::test
