// Conversions between formats of numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "softgpu/ptx/cases.h"

namespace tutti::softgpu::test {
namespace {

template <typename F>
std::vector<Instruction> toWholeNumbers() {
  const std::string t = sizeof(F) == 4 ? "f32" : "f64";
  std::vector<F> values = {F(0.3), F(-0.3), F(0.5), F(-0.5), F(1.5), F(2.5), F(-2.5), F(8388607.5), F(0.99999994)};
  for (const F value : numbers<F>()) values.push_back(value);
  const auto by = [&](int mode) {
    return singles(values, [=](F a) { return rounding(mode, [=] { return std::nearbyint(a); }); });
  };
  const std::string rest = "." + t + "." + t + " %d, %a;", types = t + " = " + t;
  return {{"cvt.rni" + rest, types, by(FE_TONEAREST)},
          {"cvt.rzi" + rest, types, by(FE_TOWARDZERO)},
          {"cvt.rmi" + rest, types, by(FE_DOWNWARD)},
          {"cvt.rpi" + rest, types, by(FE_UPWARD)}};
}

TEST(PtxConvert, NumbersToWholeNumbersKeepTheSignOfZero) {
  expectResults(toWholeNumbers<float>());
  expectResults(toWholeNumbers<double>());
  expectResults({
      {"cvt.rpi.ftz.f32.f32 %d, %a;", "f32 = f32", {{1e-40f, 0.f}, {-1e-40f, -0.f}, {1.25f, 2.f}}},
      {"cvt.rni.sat.f32.f32 %d, %a;", "f32 = f32", {{7.f, 1.f}, {-7.f, 0.f}, {kNan32, 0.f}, {0.25f, 0.f}}},
      {"cvt.sat.f32.f32 %d, %a;", "f32 = f32", {{7.f, 1.f}, {-7.f, 0.f}, {kNan32, 0.f}, {0.25f, 0.25f}}},
      {"cvt.ftz.f32.f32 %d, %a;", "f32 = f32", {{1e-40f, 0.f}, {-1e-40f, -0.f}, {1.25f, 1.25f}}},
      {"cvt.rni.f16.f16 %d, %a;", "f16 = f16", {{half(2.5), half(2)}, {half(-0.25), half(-0.0)}}},
  });
}

TEST(PtxConvert, BetweenF32AndF64) {
  std::vector<double> values = numbers<double>();
  for (const double value : {1 + 0x1p-24, 1 + 0x1.8p-23, -1 - 0x1p-30, 0x1p-149, 0x1p-150, 0x1.8p-150, 3.4028235e38,
                             3.40282357e38, 1e39, -1e39, 1e-300})
    values.push_back(value);
  const auto narrowed = [](int mode) {
    return [=](double a) {
      const volatile double value = a;
      return rounding(mode, [&] { return static_cast<float>(value); });
    };
  };
  expectResults({
      {"cvt.rn.f32.f64 %d, %a;", "f32 = f64", singles(values, narrowed(FE_TONEAREST))},
      {"cvt.rz.f32.f64 %d, %a;", "f32 = f64", singles(values, narrowed(FE_TOWARDZERO))},
      {"cvt.rm.f32.f64 %d, %a;", "f32 = f64", singles(values, narrowed(FE_DOWNWARD))},
      {"cvt.rp.f32.f64 %d, %a;", "f32 = f64", singles(values, narrowed(FE_UPWARD))},
      {"cvt.f64.f32 %d, %a;", "f64 = f32", singles(numbers<float>(), [](float a) { return double{a}; })},
      {"cvt.ftz.f64.f32 %d, %a;", "f64 = f32", singles(numbers<float>(), [](float a) { return double{flushed(a)}; })},
      {"cvt.rn.ftz.f32.f64 %d, %a;", "f32 = f64", {{1e-40, 0.f}, {-1e-40, -0.f}, {1e-30, 1e-30f}}},
      {"cvt.rn.sat.f32.f64 %d, %a;", "f32 = f64", {{7.0, 1.f}, {-7.0, 0.f}, {kNan, 0.f}, {0.1, 0.1f}, {kInf, 1.f}}},
  });
}

/// Ties and neighbours of the narrow formats, as f32.
std::vector<float> narrowCases() {
  std::vector<float> values = numbers<float>();
  for (const float value : {1 + 0x1p-11f,
                            1 + 0x1.8p-10f,
                            1 + 0x1.000002p-11f,
                            1 + 0x1p-8f,
                            1 + 0x1.8p-7f,
                            65504.f,
                            65519.f,
                            65520.f,
                            0x1p-24f,
                            0x1p-25f,
                            0x1.8p-25f,
                            0x1p-14f,
                            0x1.ffep-15f,
                            3.3895e38f,
                            0x1p-133f,
                            0x1p-134f,
                            0x1.8p-134f,
                            448.f,
                            464.f,
                            465.f,
                            57344.f,
                            61440.f,
                            0.0625f,
                            0.3f,
                            17.f,
                            19.f}) {
    values.push_back(value);
    values.push_back(-value);
  }
  return values;
}

std::vector<Case> narrowed(Format format, int mode) {
  return singles(narrowCases(), [=](float a) { return rounding(mode, [=] { return encode(format, a); }); });
}

TEST(PtxConvert, FromF32ToHalfFormats) {
  const auto relu = [](std::vector<Case> cases) {
    std::erase_if(cases,
                  [](const Case& each) { return each.results[0].bits == 0x8000; });  // of -0 the ISA says nothing
    for (Case& each : cases)
      if ((each.results[0].bits & 0x8000) != 0) each.results = Word(0);
    return cases;
  };
  expectResults({
      {"cvt.rn.f16.f32 %d, %a;", "f16 = f32", narrowed(kHalf, FE_TONEAREST)},
      {"cvt.rz.f16.f32 %d, %a;", "f16 = f32", narrowed(kHalf, FE_TOWARDZERO)},
      {"cvt.rn.relu.f16.f32 %d, %a;", "f16 = f32", relu(narrowed(kHalf, FE_TONEAREST))},
      {"cvt.rn.bf16.f32 %d, %a;", "bf16 = f32", narrowed(kBfloat, FE_TONEAREST)},
      {"cvt.rz.bf16.f32 %d, %a;", "bf16 = f32", narrowed(kBfloat, FE_TOWARDZERO)},
      {"cvt.rn.relu.bf16.f32 %d, %a;", "bf16 = f32", relu(narrowed(kBfloat, FE_TONEAREST))},
      {"cvt.rn.sat.f16.f32 %d, %a;", "f16 = f32", {{7.f, half(1)}, {-7.f, 0}, {kNan32, 0}, {0.25f, half(0.25)}}},
      {"cvt.rn.f16.f64 %d, %a;",
       "f16 = f64",
       {{1 + 0x1p-11 + 0x1p-40, half(1 + 0x1p-10)}, {1e6, half(kInf)}, {0.1, half(0.1)}}},
  });
}

TEST(PtxConvert, FromHalfFormatsIsExact) {
  std::vector<Case> halves32, halves64, bfloats;
  for (std::uint32_t bits = 0; bits < 0x10000; bits += 89) {
    halves32.push_back({bits, static_cast<float>(decode(kHalf, bits))});
    halves64.push_back({bits, decode(kHalf, bits)});
    bfloats.push_back({bits, std::bit_cast<float>(bits << 16)});
  }
  for (const std::uint32_t bits : {1u, 0x3ffu, 0x400u, 0x7bffu, 0x7c00u, 0xfc00u, 0x8000u, 0x7e00u})
    halves32.push_back({bits, static_cast<float>(decode(kHalf, bits))});
  expectResults({{"cvt.f32.f16 %d, %a;", "f32 = f16", halves32},
                 {"cvt.f64.f16 %d, %a;", "f64 = f16", halves64},
                 {"cvt.f32.bf16 %d, %a;", "f32 = bf16", bfloats},
                 {"cvt.ftz.f32.f16 %d, %a;", "f32 = f16", {{half(2), 2.f}, {half(-0.5), -0.5f}}}});
}

TEST(PtxConvert, TheFirstOfTwoBecomesTheUpperHalf) {
  const auto one = half(1), two = half(2);
  expectResults({
      {"cvt.rn.f16x2.f32 %d, %a, %b;",
       "b32 = f32 f32",
       {{{1.f, 2.f}, packed(two, one)}, {{1 + 0x1p-11f, -1e9f}, packed(half(-kInf), one)}}},
      {"cvt.rz.f16x2.f32 %d, %a, %b;", "b32 = f32 f32", {{{2049.f, 1e9f}, packed(0x7bff, half(2048))}}},
      {"cvt.rn.relu.f16x2.f32 %d, %a, %b;",
       "b32 = f32 f32",
       {{{-1.f, 2.f}, packed(two, 0)}, {{2.f, -1.f}, packed(0, two)}}},
      {"cvt.rn.bf16x2.f32 %d, %a, %b;", "b32 = f32 f32", {{{1.f, 2.f}, packed(bfloat(2), bfloat(1))}}},
      {"cvt.rz.bf16x2.f32 %d, %a, %b;",
       "b32 = f32 f32",
       {{{1.999f, -2.999f}, packed(bfloat(-2.984375), bfloat(1.9921875))}}},
      {"cvt.rn.relu.bf16x2.f32 %d, %a, %b;", "b32 = f32 f32", {{{-1.f, 2.f}, packed(bfloat(2), 0)}}},
  });
}

TEST(PtxConvert, Tf32RoundsTiesAwayFromZero) {
  const std::string cut = " and.b32 %d, %d, 0xffffe000;";  // the rest means nothing
  expectResults({
      {"cvt.rna.tf32.f32 %d, %a;" + cut,
       "b32 = f32",
       {{1 + 0x1p-11f, 1 + 0x1p-10f},
        {-1 - 0x1p-11f, -1 - 0x1p-10f},
        {1 + 0x1.fp-12f, 1.f},
        {0.f, 0.f},
        {kInf32, kInf32}}},
      {"cvt.rn.tf32.f32 %d, %a;" + cut,
       "b32 = f32",
       {{1 + 0x1p-11f, 1.f}, {1 + 0x1.8p-10f, 1 + 0x1p-9f}, {-3.f, -3.f}}},
      {"cvt.rz.tf32.f32 %d, %a;" + cut, "b32 = f32", {{1 + 0x1.8p-10f, 1 + 0x1p-10f}}},
      {"cvt.rn.relu.tf32.f32 %d, %a;" + cut, "b32 = f32", {{-3.f, 0.f}, {3.f, 3.f}}},
  });
}

constexpr Format kE4m3{4, 3}, kE5m2{5, 2};

/// A byte; beyond the largest: the largest.
std::uint32_t byteOf(Format format, double value) {
  if (std::isnan(value)) return 0x7f;
  const std::uint32_t largest = format.fraction == 3 ? 0x7e : 0x7b;
  const auto bits = std::isinf(value) ? largest : magnitudeBits(format, std::fabs(value));
  return (std::signbit(value) ? 0x80 : 0) | static_cast<std::uint32_t>(std::min<std::uint64_t>(bits, largest));
}

std::vector<Case> bytesOf(Format format) {
  const auto values = narrowCases();
  std::vector<Case> cases;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float other = values[(i + 1) % values.size()];
    cases.push_back({{values[i], other}, byteOf(format, values[i]) << 8 | byteOf(format, other)});
  }
  return cases;
}

TEST(PtxConvert, ToBytesStopsAtTheLargest) {
  const auto pairOf = [](double low, double high) { return packed(half(low), half(high)); };
  expectResults({
      {"cvt.rn.satfinite.e4m3x2.f32 %d, %a, %b;", "b16 = f32 f32", bytesOf(kE4m3)},
      {"cvt.rn.satfinite.e5m2x2.f32 %d, %a, %b;", "b16 = f32 f32", bytesOf(kE5m2)},
      {"cvt.rn.satfinite.relu.e4m3x2.f32 %d, %a, %b;",
       "b16 = f32 f32",
       {{{-1.f, 1.f}, 0x0038}, {{1.f, -500.f}, 0x3800}}},
      {"cvt.rn.satfinite.relu.e5m2x2.f32 %d, %a, %b;", "b16 = f32 f32", {{{-1.f, 1.f}, 0x003c}}},
      {"cvt.rn.satfinite.e4m3x2.f16x2 %d, %a;",
       "b16 = b32",
       {{pairOf(1, -1000), 0xfe38}, {pairOf(0.0625, kNan), 0x7f18}}},
      {"cvt.rn.satfinite.e5m2x2.f16x2 %d, %a;", "b16 = b32", {{pairOf(1, -2), 0xc03c}, {pairOf(kInf, 0.3), 0x357b}}},
  });
}

TEST(PtxConvert, FromBytesIsExact) {
  std::vector<Case> e4m3, e5m2, relu;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const std::uint32_t other = byte * 7 % 127;
    const auto half4 = [](std::uint32_t bits) {
      if ((bits & 0x7f) == 0x7f) return std::uint16_t{0x7fff};
      const double magnitude = (bits & 0x78) == 0x78 ? 256 * (1 + (bits & 7) / 8.0) : decode(kE4m3, bits & 0x7f);
      return half((bits & 0x80) != 0 ? -magnitude : magnitude);
    };
    if ((byte & 0x7f) != 0x7f) e4m3.push_back({byte | other << 8, packed(half4(byte), half4(other))});
    if ((byte & 0x7f) <= 0x7c && other <= 0x7c)
      e5m2.push_back({byte | other << 8, packed(half(decode(kE5m2, byte)), half(decode(kE5m2, other)))});
    if (byte > 0x80 && byte < 0xff) relu.push_back({byte | other << 8, packed(0, half4(other))});
  }
  expectResults({{"cvt.rn.f16x2.e4m3x2 %d, %a;", "b32 = b16", e4m3},
                 {"cvt.rn.f16x2.e5m2x2 %d, %a;", "b32 = b16", e5m2},
                 {"cvt.rn.relu.f16x2.e4m3x2 %d, %a;", "b32 = b16", relu}});
}

}  // namespace
}  // namespace tutti::softgpu::test
