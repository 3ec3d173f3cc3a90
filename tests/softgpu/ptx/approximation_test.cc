// Functions that a GPU only approximates: within the error that the ISA states, and exact where it says so.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "softgpu/ptx/cases.h"

namespace tutti::softgpu::test {
namespace {

constexpr double kOneUlp = 0x1p-23;

/// Cases of `function` in double precision.
template <typename F>
std::vector<Case> of(const std::vector<float>& values, F function) {
  return singles(values, [=](float a) { return static_cast<float>(function(static_cast<double>(a))); });
}

const std::vector<float> kPositive = {1e-30f, 0.001f, 0.1f, 0.5f,  0.7f,       1.0f,
                                      1.5f,   2.0f,   3.0f, 10.0f, 12345.678f, 1e20f};
const std::vector<float> kAngles = {0.0f,  -0.0f,      0.1f, -0.1f, 0.5f,        1.0f,
                                    -1.0f, 1.5707963f, 2.0f, 3.0f,  -3.1415927f, 6.28f};

TEST(PtxApproximation, ReciprocalsAndRootsWithinTheStatedError) {
  const auto reciprocalRoot = [](double a) { return 1 / std::sqrt(a); };
  expectResults({
      {"rcp.approx.f32 %d, %a;", "f32 = f32", of(kPositive, [](double a) { return 1 / a; }), kOneUlp},
      {"rcp.approx.ftz.f32 %d, %a;", "f32 = f32", of(kPositive, [](double a) { return 1 / a; }), kOneUlp},
      {"sqrt.approx.f32 %d, %a;", "f32 = f32", of(kPositive, [](double a) { return std::sqrt(a); }), kOneUlp},
      {"sqrt.approx.ftz.f32 %d, %a;", "f32 = f32", of(kPositive, [](double a) { return std::sqrt(a); }), kOneUlp},
      {"rsqrt.approx.f32 %d, %a;", "f32 = f32", of(kPositive, reciprocalRoot), 0x1p-22},
      {"rsqrt.approx.ftz.f32 %d, %a;", "f32 = f32", of(kPositive, reciprocalRoot), 0x1p-22},
      {"rsqrt.approx.f64 %d, %a;", "f64 = f64", {{4.0, 0.5}, {2.0, std::sqrt(0.5)}, {1e-300, 1e150}}, 0x1p-20},
      {"rcp.approx.ftz.f64 %d, %a;", "f64 = f64", {{4.0, 0.25}, {3.0, 1.0 / 3}, {-1e100, -1e-100}}, 0x1p-20},
      {"rsqrt.approx.ftz.f64 %d, %a;", "f64 = f64", {{4.0, 0.5}, {3.0, std::sqrt(1.0 / 3)}}, 0x1p-20},
  });
}

TEST(PtxApproximation, ReciprocalsAndRootsOfWhatIsSpecial) {
  expectResults({
      {"rcp.approx.f32 %d, %a;",
       "f32 = f32",
       {{0.f, kInf32},
        {-0.f, -kInf32},
        {kInf32, 0.f},
        {-kInf32, -0.f},
        {kNan32, kNan32},
        {0x1p-130f, kInf32},
        {0x1p127f, 0x1p-127f}}},
      {"rcp.approx.ftz.f32 %d, %a;", "f32 = f32", {{0x1p-127f, kInf32}, {-0x1p-127f, -kInf32}, {0x1p127f, 0.f}}},
      {"sqrt.approx.f32 %d, %a;",
       "f32 = f32",
       {{0.f, 0.f}, {-0.f, -0.f}, {kInf32, kInf32}, {-1.f, kNan32}, {-kInf32, kNan32}, {kNan32, kNan32}}},
      {"sqrt.approx.ftz.f32 %d, %a;", "f32 = f32", {{0x1p-130f, 0.f}, {-0x1p-130f, -0.f}}},
      {"rsqrt.approx.f32 %d, %a;",
       "f32 = f32",
       {{0.f, kInf32},
        {-0.f, -kInf32},
        {kInf32, 0.f},
        {-1.f, kNan32},
        {-kInf32, kNan32},
        {kNan32, kNan32},
        {0x1p-130f, 0x1p65f}},
       0x1p-22},
      {"rsqrt.approx.ftz.f32 %d, %a;", "f32 = f32", {{0x1p-130f, kInf32}, {-0x1p-130f, -kInf32}}},
      {"rsqrt.approx.f64 %d, %a;", "f64 = f64", {{0.0, kInf}, {-0.0, -kInf}, {kInf, 0.0}, {-1.0, kNan}}},
      {"rcp.approx.ftz.f64 %d, %a;",
       "f64 = f64",
       {{0.0, kInf}, {-0.0, -kInf}, {kInf, 0.0}, {-kInf, -0.0}, {kNan, kNan}, {1e-310, kInf}}},
  });
}

TEST(PtxApproximation, SinesWithinTheStatedError) {
  expectResults({
      {"sin.approx.f32 %d, %a;", "f32 = f32", of(kAngles, [](double a) { return std::sin(a); }), 0, 0x1p-20},
      {"cos.approx.f32 %d, %a;", "f32 = f32", of(kAngles, [](double a) { return std::cos(a); }), 0, 0x1p-20},
      {"sin.approx.ftz.f32 %d, %a;", "f32 = f32", of(kAngles, [](double a) { return std::sin(a); }), 0, 0x1p-20},
      {"cos.approx.ftz.f32 %d, %a;", "f32 = f32", of(kAngles, [](double a) { return std::cos(a); }), 0, 0x1p-20},
      {"sin.approx.f32 %d, %a;",
       "f32 = f32",
       {{0.f, 0.f}, {-0.f, -0.f}, {kInf32, kNan32}, {-kInf32, kNan32}, {kNan32, kNan32}}},
      {"cos.approx.f32 %d, %a;",
       "f32 = f32",
       {{0.f, 1.f}, {-0.f, 1.f}, {kInf32, kNan32}, {-kInf32, kNan32}, {kNan32, kNan32}}},
      {"sin.approx.ftz.f32 %d, %a;", "f32 = f32", {{-0x1p-130f, -0.f}, {0x1p-130f, 0.f}}},
  });
}

TEST(PtxApproximation, ExponentialsAndLogarithmsWithinTheStatedError) {
  const std::vector<float> exponents = {0.5f, 1.0f, -1.0f, 10.25f, -20.75f, 126.9f, -125.5f, 0.001f};
  const std::vector<float> farFromOne = {1e-30f, 0.1f, 0.4f, 2.5f, 10.f, 1e20f};
  const std::vector<float> nearOne = {0.51f, 0.9f, 0.9999f, 1.0001f, 1.1f, 1.99f};
  const auto logarithm = [](double a) { return std::log2(a); };
  expectResults({
      {"ex2.approx.f32 %d, %a;", "f32 = f32", of(exponents, [](double a) { return std::exp2(a); }), 0x1p-22},
      {"ex2.approx.ftz.f32 %d, %a;", "f32 = f32", of(exponents, [](double a) { return std::exp2(a); }), 0x1p-22},
      {"ex2.approx.f32 %d, %a;",
       "f32 = f32",
       {{0.f, 1.f},
        {-0.f, 1.f},
        {kInf32, kInf32},
        {-kInf32, 0.f},
        {kNan32, kNan32},
        {128.f, kInf32},
        {-200.f, 0.f},
        {-130.f, 0x1p-130f}}},
      {"ex2.approx.ftz.f32 %d, %a;", "f32 = f32", {{-130.f, 0.f}, {0x1p-130f, 1.f}}},
      {"lg2.approx.f32 %d, %a;", "f32 = f32", of(farFromOne, logarithm), 0x1p-22},
      {"lg2.approx.f32 %d, %a;", "f32 = f32", of(nearOne, logarithm), 0, 0x1p-22},
      {"lg2.approx.ftz.f32 %d, %a;", "f32 = f32", of(farFromOne, logarithm), 0x1p-22},
      {"lg2.approx.f32 %d, %a;",
       "f32 = f32",
       {{0.f, -kInf32},
        {-0.f, -kInf32},
        {kInf32, kInf32},
        {-1.f, kNan32},
        {-kInf32, kNan32},
        {kNan32, kNan32},
        {1.f, 0.f},
        {0x1p-130f, -130.f}}},
      {"lg2.approx.ftz.f32 %d, %a;", "f32 = f32", {{0x1p-130f, -kInf32}, {-0x1p-130f, -kInf32}, {8.f, 3.f}}},
  });
}

TEST(PtxApproximation, HyperbolicTangentWithinTheStatedError) {
  const std::vector<float> values = {0.01f, -0.01f, 0.5f, -0.5f, 1.f, 2.f, -3.f, 10.f, -20.f};
  expectResults({
      {"tanh.approx.f32 %d, %a;", "f32 = f32", of(values, [](double a) { return std::tanh(a); }), 0x1p-10},
      {"tanh.approx.f32 %d, %a;",
       "f32 = f32",
       {{0.f, 0.f}, {-0.f, -0.f}, {kInf32, 1.f}, {-kInf32, -1.f}, {kNan32, kNan32}}},
      {"{ .reg .b16 %t; cvt.rn.f16.f32 %t, %a; tanh.approx.f16 %t, %t; cvt.f32.f16 %d, %t; }", "f32 = f32",
       of({0.5f, -0.5f, 1.f, 3.f}, [](double a) { return std::tanh(a); }), 0, 0x1p-10},
      {"{ .reg .b16 %t; cvt.rn.f16.f32 %t, %a; ex2.approx.f16 %t, %t; cvt.f32.f16 %d, %t; }", "f32 = f32",
       of({0.5f, -0.5f, 1.f, 3.25f}, [](double a) { return std::exp2(a); }), 0x1p-9},
      {"{ .reg .b32 %t; cvt.rn.bf16x2.f32 %t, %a, %a; tanh.approx.bf16x2 %t, %t; and.b32 %t, %t, 0xffff0000;"
       " mov.b32 %d, %t; }",
       "f32 = f32", of({0.5f, -0.5f, 1.f, 3.f}, [](double a) { return std::tanh(a); }), 0, 0x1p-8},
      {"{ .reg .b32 %t; cvt.rn.bf16x2.f32 %t, %a, %a; ex2.approx.ftz.bf16x2 %t, %t; and.b32 %t, %t, 0xffff0000;"
       " mov.b32 %d, %t; }",
       "f32 = f32", of({0.5f, -0.5f, 1.f, 3.25f}, [](double a) { return std::exp2(a); }), 0x1p-6},
  });
}

TEST(PtxApproximation, QuotientsWithinTheStatedError) {
  const auto quotient = [](float a, float b) { return static_cast<float>(static_cast<double>(a) / b); };
  const std::vector<float> values = {1.f, -3.f, 0.1f, 12345.678f, 1e10f, -1e-10f};
  const std::vector<Case> special = {{{1.f, 0.f}, kInf32},       {{-1.f, 0.f}, -kInf32}, {{0.f, 0.f}, kNan32},
                                     {{kInf32, kInf32}, kNan32}, {{1.f, -kInf32}, -0.f}, {{0.f, -3.f}, -0.f},
                                     {{kNan32, 1.f}, kNan32},    {{kInf32, 2.f}, kInf32}};
  expectResults({
      {"div.approx.f32 %d, %a, %b;", "f32 = f32 f32", pairs(values, quotient), 2 * kOneUlp},
      {"div.approx.ftz.f32 %d, %a, %b;", "f32 = f32 f32", pairs(values, quotient), 2 * kOneUlp},
      {"div.full.f32 %d, %a, %b;", "f32 = f32 f32", pairs(values, quotient), 2 * kOneUlp},
      {"div.full.ftz.f32 %d, %a, %b;", "f32 = f32 f32", pairs(values, quotient), 2 * kOneUlp},
      {"div.full.f32 %d, %a, %b;",
       "f32 = f32 f32",
       {{{0x1p127f, 0x1p127f}, 1.f}, {{0x1.8p127f, 0x1p126f}, 3.f}},
       2 * kOneUlp},
      {"div.approx.f32 %d, %a, %b;", "f32 = f32 f32", special},
      {"div.full.f32 %d, %a, %b;", "f32 = f32 f32", special},
      {"div.full.ftz.f32 %d, %a, %b;", "f32 = f32 f32", {{{1.f, 0x1p-130f}, kInf32}, {{0x1p-130f, 1.f}, 0.f}}},
  });
}

}  // namespace
}  // namespace tutti::softgpu::test
