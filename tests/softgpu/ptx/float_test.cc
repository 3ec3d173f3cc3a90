// Exact arithmetic of f32 and f64: the processor computes what is expected, rounding as the instruction does.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "softgpu/ptx/cases.h"

namespace tutti::softgpu::test {
namespace {

struct Mode {
  const char* name;
  int processor;
};
const Mode kModes[] = {{".rn", FE_TONEAREST}, {".rz", FE_TOWARDZERO}, {".rm", FE_DOWNWARD}, {".rp", FE_UPWARD}};

template <typename F>
const char* kType = sizeof(F) == 4 ? "f32" : "f64";

// Operands are read where they are used, after the processor was told how to round.
template <typename F, typename Op>
auto rounded(int mode, Op operation) {
  return [=](auto... values) {
    const volatile F operands[] = {values...};
    return rounding(mode, [&] { return operation(operands); });
  };
}

template <typename F>
F sum(const volatile F* x) {
  return x[0] + x[1];
}
template <typename F>
F difference(const volatile F* x) {
  return x[0] - x[1];
}
template <typename F>
F product(const volatile F* x) {
  return x[0] * x[1];
}
template <typename F>
F quotient(const volatile F* x) {
  return x[0] / x[1];
}
template <typename F>
F fused(const volatile F* x) {
  return std::fma(x[0], x[1], x[2]);
}
template <typename F>
F reciprocal(const volatile F* x) {
  return 1 / x[0];
}
template <typename F>
F root(const volatile F* x) {
  return std::sqrt(x[0]);
}

template <typename F>
std::vector<F> few() {
  using Limits = std::numeric_limits<F>;
  return {0,
          -F{0},
          1,
          F(-1.0) / 3,
          1 + Limits::epsilon(),
          Limits::max(),
          -Limits::min(),
          Limits::denorm_min() * 5,
          Limits::infinity(),
          Limits::quiet_NaN()};
}

template <typename F>
std::vector<Instruction> exactTable(const Mode& mode) {
  const std::string t = kType<F>, one = t + " = " + t, two = one + " " + t, three = two + " " + t;
  const std::string suffix = std::string(mode.name) + "." + t;
  const auto values = numbers<F>();
  const int m = mode.processor;
  return {
      {"add" + suffix + " %d, %a, %b;", two, pairs(values, rounded<F>(m, sum<F>))},
      {"sub" + suffix + " %d, %a, %b;", two, pairs(values, rounded<F>(m, difference<F>))},
      {"mul" + suffix + " %d, %a, %b;", two, pairs(values, rounded<F>(m, product<F>))},
      {"div" + suffix + " %d, %a, %b;", two, pairs(values, rounded<F>(m, quotient<F>))},
      {"fma" + suffix + " %d, %a, %b, %c;", three, triples(few<F>(), few<F>(), rounded<F>(m, fused<F>))},
      {"mad" + suffix + " %d, %a, %b, %c;", three, triples(few<F>(), few<F>(), rounded<F>(m, fused<F>))},
      {"rcp" + suffix + " %d, %a;", one, singles(values, rounded<F>(m, reciprocal<F>))},
      {"sqrt" + suffix + " %d, %a;", one, singles(values, rounded<F>(m, root<F>))},
  };
}

TEST(PtxFloat, RoundsToNearestEven) {
  expectResults(exactTable<float>(kModes[0]));
  expectResults(exactTable<double>(kModes[0]));
}

TEST(PtxFloat, RoundsTowardsZero) {
  expectResults(exactTable<float>(kModes[1]));
  expectResults(exactTable<double>(kModes[1]));
}

TEST(PtxFloat, RoundsDown) {
  expectResults(exactTable<float>(kModes[2]));
  expectResults(exactTable<double>(kModes[2]));
}

TEST(PtxFloat, RoundsUp) {
  expectResults(exactTable<float>(kModes[3]));
  expectResults(exactTable<double>(kModes[3]));
}

TEST(PtxFloat, RoundsToNearestWithoutAWord) {
  const auto f = numbers<float>();
  const auto d = numbers<double>();
  expectResults({
      {"add.f32 %d, %a, %b;", "f32 = f32 f32", pairs(f, [](float a, float b) { return a + b; })},
      {"sub.f32 %d, %a, %b;", "f32 = f32 f32", pairs(f, [](float a, float b) { return a - b; })},
      {"mul.f32 %d, %a, %b;", "f32 = f32 f32", pairs(f, [](float a, float b) { return a * b; })},
      {"add.f64 %d, %a, %b;", "f64 = f64 f64", pairs(d, [](double a, double b) { return a + b; })},
      {"sub.f64 %d, %a, %b;", "f64 = f64 f64", pairs(d, [](double a, double b) { return a - b; })},
      {"mul.f64 %d, %a, %b;", "f64 = f64 f64", pairs(d, [](double a, double b) { return a * b; })},
      // One rounding less than mul and add: (1 + e) * (1 - e) - 1 is -e * e.
      {"fma.rn.f32 %d, %a, %b, %c;", "f32 = f32 f32 f32", {{{1 + 0x1p-23f, 1 - 0x1p-23f, -1.f}, -0x1p-46f}}},
      {"mul.rn.f32 %d, %a, %b; add.rn.f32 %d, %d, %c;",
       "f32 = f32 f32 f32",
       {{{1 + 0x1p-23f, 1 - 0x1p-23f, -1.f}, 0.f}}},
  });
}

TEST(PtxFloat, FlushesOperandsAndResultsThatAreNotNormal) {
  const auto values = numbers<float>();
  const auto flush = [](auto operation) {
    return [=](auto... operands) { return flushed(operation(flushed(operands)...)); };
  };
  expectResults({
      {"add.ftz.f32 %d, %a, %b;", "f32 = f32 f32", pairs(values, flush([](float a, float b) { return a + b; }))},
      {"sub.ftz.f32 %d, %a, %b;", "f32 = f32 f32", pairs(values, flush([](float a, float b) { return a - b; }))},
      {"mul.ftz.f32 %d, %a, %b;", "f32 = f32 f32", pairs(values, flush([](float a, float b) { return a * b; }))},
      {"fma.rn.ftz.f32 %d, %a, %b, %c;", "f32 = f32 f32 f32",
       triples(few<float>(), few<float>(), flush([](float a, float b, float c) { return std::fma(a, b, c); }))},
      {"div.rn.ftz.f32 %d, %a, %b;", "f32 = f32 f32", pairs(values, flush([](float a, float b) { return a / b; }))},
      {"sqrt.rn.ftz.f32 %d, %a;", "f32 = f32", singles(values, flush([](float a) { return std::sqrt(a); }))},
      {"rcp.rn.ftz.f32 %d, %a;", "f32 = f32", singles(values, flush([](float a) { return 1 / a; }))},
      {"abs.ftz.f32 %d, %a;", "f32 = f32", singles(values, flush([](float a) { return std::fabs(a); }))},
      {"neg.ftz.f32 %d, %a;", "f32 = f32", singles(values, flush([](float a) { return -a; }))},
  });
}

TEST(PtxFloat, SaturatesToTheUnitIntervalAndNanToZero) {
  const auto values = numbers<float>();
  expectResults({
      {"add.sat.f32 %d, %a, %b;", "f32 = f32 f32", pairs(values, [](float a, float b) { return saturated(a + b); })},
      {"sub.sat.f32 %d, %a, %b;", "f32 = f32 f32", pairs(values, [](float a, float b) { return saturated(a - b); })},
      {"mul.sat.f32 %d, %a, %b;", "f32 = f32 f32", pairs(values, [](float a, float b) { return saturated(a * b); })},
      {"fma.rn.sat.f32 %d, %a, %b, %c;", "f32 = f32 f32 f32",
       triples(few<float>(), few<float>(), [](float a, float b, float c) { return saturated(std::fma(a, b, c)); })},
      {"add.ftz.sat.f32 %d, %a, %b;", "f32 = f32 f32",
       pairs(values, [](float a, float b) { return saturated(flushed(flushed(a) + flushed(b))); })},
  });
}

template <typename F>
F least(F a, F b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
  if (a == b) return std::signbit(a) ? a : b;  // -0 is less than +0
  return a < b ? a : b;
}

template <typename F>
void addExtremes(std::vector<Instruction>& table, std::vector<F> values) {
  const std::string t = kType<F>;
  table.push_back({"min." + t + " %d, %a, %b;", t + " = " + t + " " + t, pairs(values, least<F>)});
  table.push_back({"max." + t + " %d, %a, %b;", t + " = " + t + " " + t,
                   pairs(values, [](F a, F b) { return -least<F>(-a, -b); })});
}

TEST(PtxFloat, MinimumAndMaximumPassOverNanAndOrderZeros) {
  std::vector<Instruction> table;
  addExtremes<float>(table, numbers<float>());
  addExtremes<double>(table, numbers<double>());
  const auto flushing = [](float a, float b) { return least(flushed(a), flushed(b)); };
  table.push_back({"min.ftz.f32 %d, %a, %b;", "f32 = f32 f32", pairs(numbers<float>(), flushing)});
  expectResults(table);
}

TEST(PtxFloat, MinimumAndMaximumMayKeepNanOrXorSigns) {
  const float nan = std::nanf("");
  const auto keeps = [=](float a, float b) { return std::isnan(a) || std::isnan(b) ? nan : least(a, b); };
  const auto xorSigns = [](float a, float b, float magnitude) {
    return std::isnan(magnitude) || std::signbit(a) == std::signbit(b) ? magnitude : -magnitude;
  };
  std::vector<float> values = numbers<float>();
  std::erase_if(values, [](float value) { return std::isnan(value); });
  expectResults({
      {"min.NaN.f32 %d, %a, %b;", "f32 = f32 f32", pairs(numbers<float>(), keeps)},
      {"max.NaN.f32 %d, %a, %b;", "f32 = f32 f32",
       pairs(numbers<float>(), [=](float a, float b) { return -keeps(-a, -b); })},
      {"min.xorsign.abs.f32 %d, %a, %b;", "f32 = f32 f32",
       pairs(values, [=](float a, float b) { return xorSigns(a, b, least(std::fabs(a), std::fabs(b))); })},
      {"max.xorsign.abs.f32 %d, %a, %b;", "f32 = f32 f32",
       pairs(values, [=](float a, float b) { return xorSigns(a, b, -least(-std::fabs(a), -std::fabs(b))); })},
      // NaN results are canonical, so their bits count here.
      {"min.f32 %d, %a, %b;", "f32 = f32 f32", {{{nan, nan}, nan}}},
      {"min.NaN.f32 %d, %a, %b; mov.b32 %e, %d;", "f32 b32 = f32 f32", {{{nan, 1.f}, {nan, 0x7fffffff}}}},
      {"max.f32 %d, %a, %b; mov.b32 %e, %d;", "f32 b32 = f32 f32", {{{-nan, nan}, {nan, 0x7fffffff}}}},
  });
}

template <typename F>
void addSigns(std::vector<Instruction>& table) {
  const std::string t = kType<F>, one = t + " = " + t;
  table.push_back({"abs." + t + " %d, %a;", one, singles(numbers<F>(), [](F a) { return std::fabs(a); })});
  table.push_back({"neg." + t + " %d, %a;", one, singles(numbers<F>(), [](F a) { return -a; })});
  table.push_back({"copysign." + t + " %d, %a, %b;", one + " " + t,
                   pairs(numbers<F>(), [](F a, F b) { return std::copysign(b, a); })});
}

TEST(PtxFloat, SignsAreTakenAwayTurnedAndCopied) {
  std::vector<Instruction> table;
  addSigns<float>(table);
  addSigns<double>(table);
  expectResults(table);
}

template <typename F>
void addClasses(std::vector<Instruction>& table) {
  const auto row = [&](const std::string& property, auto holds) {
    table.push_back({"testp." + property + "." + kType<F> + " %d, %a;", std::string("pred = ") + kType<F>,
                     singles(numbers<F>(), holds)});
  };
  row("finite", [](F a) { return std::isfinite(a); });
  row("infinite", [](F a) { return std::isinf(a); });
  row("number", [](F a) { return !std::isnan(a); });
  row("notanumber", [](F a) { return std::isnan(a); });
  row("normal", [](F a) { return std::fpclassify(a) == FP_NORMAL || a == 0; });  // zeros count as normal
  row("subnormal", [](F a) { return std::fpclassify(a) == FP_SUBNORMAL; });
}

TEST(PtxFloat, BelongsToAClass) {
  std::vector<Instruction> table;
  addClasses<float>(table);
  addClasses<double>(table);
  expectResults(table);
}

}  // namespace
}  // namespace tutti::softgpu::test
