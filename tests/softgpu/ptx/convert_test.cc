// Conversions from and to integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "softgpu/ptx/cases.h"

namespace tutti::softgpu::test {
namespace {

struct Integer {
  std::string name;
  bool isSigned;
  int bits;

  Wide lowest() const { return isSigned ? -(Wide{1} << (bits - 1)) : 0; }
  Wide highest() const { return (Wide{1} << (bits - (isSigned ? 1 : 0))) - 1; }
  Wide clamped(Wide value) const { return std::min(std::max(value, lowest()), highest()); }
  /// The low bits of `value`, with their sign.
  Wide cut(Wide value) const {
    const Wide low = value & ((Wide{1} << bits) - 1);
    return isSigned && low > highest() ? low - (Wide{1} << bits) : low;
  }
  /// Of what registers have: there are none of 8 bits.
  std::string inRegister() const { return "b" + std::to_string(bits == 8 ? 32 : bits); }
};

std::vector<Integer> integers() {
  std::vector<Integer> all;
  for (const int bits : {8, 16, 32, 64})
    for (const bool isSigned : {false, true})
      all.push_back({(isSigned ? "s" : "u") + std::to_string(bits), isSigned, bits});
  return all;
}

const std::vector<std::uint64_t> kIntegers = {0,
                                              1,
                                              0x7f,
                                              0x80,
                                              0xff,
                                              0x100,
                                              0x7fff,
                                              0x8000,
                                              0xffff,
                                              0x10000,
                                              0x7fffffff,
                                              0x80000000u,
                                              0xffffffffu,
                                              0x100000000u,
                                              0x7fffffffffffffffu,
                                              0x8000000000000000u,
                                              0xffffffffffffffffu,
                                              0xffffffffffffff80u,
                                              0xffffffffffffff7fu,
                                              0xffffffffffff8000u,
                                              0xffffffffffff7fffu,
                                              0xffffffff80000000u,
                                              0xffffffff7fffffffu,
                                              0x1234567890abcdefu};

std::uint64_t low64(Wide value) {
  return static_cast<std::uint64_t>(value);
}

std::vector<Instruction> betweenIntegers(bool saturating) {
  std::vector<Instruction> table;
  for (const Integer& to : integers()) {
    for (const Integer& from : integers()) {
      if (saturating && to.lowest() <= from.lowest() && to.highest() >= from.highest()) continue;  // not allowed
      const std::string code =
          std::string("cvt.") + (saturating ? "sat." : "") + to.name + "." + from.name + " %d, %a;";
      table.push_back({code, to.inRegister() + " = " + from.inRegister(), singles(kIntegers, [&](std::uint64_t a) {
                         const Wide value = from.cut(a);
                         return low64(saturating ? to.clamped(value) : to.cut(value));
                       })});
    }
  }
  return table;
}

TEST(PtxConvert, IntegersAreCutAndExtendedByTheirSign) {
  expectResults(betweenIntegers(false));
}

TEST(PtxConvert, IntegersSaturateWhereTheWordSaysSo) {
  expectResults(betweenIntegers(true));
}

TEST(PtxConvert, NarrowIntegersFillWiderRegisters) {
  expectResults({
      {"cvt.s8.s32 %d, %a;", "b64 = b32", {{0x80, -128}, {0x17f, 127}}},
      {"cvt.u8.s32 %d, %a;", "b64 = b32", {{0x80, 128}, {-1, 255}}},
      {"cvt.s16.s32 %d, %a;", "b32 = b32", {{0x8000, -32768}, {0x17fff, 32767}}},
      {"cvt.u16.u32 %d, %a;", "b64 = b32", {{0x18000, 0x8000}, {-1, 0xffff}}},
      {"cvt.u32.u16 %d, %a;", "b32 = b32", {{0x12348765, 0x8765}, {-1, 0xffff}}},
      {"cvt.s64.s16 %d, %a;", "b64 = b64", {{0x12348765, 0xffffffffffff8765u}}},
      {"cvt.s32.s8 %d, %a;", "b32 = b16", {{0x1280, -128}, {0x127f, 127}}},
  });
}

struct Rounding {
  const char* name;
  int processor;
};
const Rounding kRoundings[] = {{"rni", FE_TONEAREST}, {"rzi", FE_TOWARDZERO}, {"rmi", FE_DOWNWARD}, {"rpi", FE_UPWARD}};

const std::vector<double> kNumbers = {0.0,
                                      -0.0,
                                      0.3,
                                      -0.3,
                                      0.5,
                                      -0.5,
                                      1.5,
                                      -1.5,
                                      2.5,
                                      -2.5,
                                      0.75,
                                      -0.75,
                                      126.5,
                                      127.5,
                                      128,
                                      -128.5,
                                      -129,
                                      255.5,
                                      256,
                                      32767.5,
                                      -32769,
                                      65535.5,
                                      65536,
                                      2147483520.0,
                                      2147483648.0,
                                      -2147483648.0,
                                      -2147483904.0,
                                      4294967040.0,
                                      4294967296.0,
                                      1e18,
                                      9223372036854775808.0,
                                      -9223372036854775808.0,
                                      18446744073709551616.0,
                                      -1e30,
                                      1e30,
                                      std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity()};

/// Of NaN the ISA says: 0, and the highest bit alone where 64 bits are on one of both sides.
Wide ofNan(const Integer& to, bool wideSource) {
  return wideSource || to.bits == 64 ? Wide{1} << (to.bits - 1) : 0;
}

template <typename F>
std::vector<Instruction> toIntegers(const Rounding& mode) {
  const std::string from = sizeof(F) == 4 ? "f32" : "f64";
  std::vector<Instruction> table;
  for (const Integer& to : integers()) {
    std::vector<Case> cases;
    for (const double number : kNumbers) {
      const F value = static_cast<F>(number);
      const F whole = rounding(mode.processor, [=] { return std::nearbyint(value); });
      const Wide exact =
          std::fabs(whole) > 1e20 ? (whole > 0 ? Wide{1} << 70 : -(Wide{1} << 70)) : static_cast<Wide>(whole);
      cases.push_back({Word(value), Word(low64(to.clamped(exact)))});
    }
    if (sizeof(F) == 4 || to.bits >= 32)
      cases.push_back({Word(std::numeric_limits<F>::quiet_NaN()), Word(low64(ofNan(to, sizeof(F) == 8)))});
    const std::string code = std::string("cvt.") + mode.name + "." + to.name + "." + from + " %d, %a;";
    table.push_back({code, to.inRegister() + " = " + from, cases});
  }
  return table;
}

TEST(PtxConvert, NumbersToTheNearestIntegerInRange) {
  expectResults(toIntegers<float>(kRoundings[0]));
  expectResults(toIntegers<double>(kRoundings[0]));
}

TEST(PtxConvert, NumbersTowardsZeroInRange) {
  expectResults(toIntegers<float>(kRoundings[1]));
  expectResults(toIntegers<double>(kRoundings[1]));
}

TEST(PtxConvert, NumbersDownwardsInRange) {
  expectResults(toIntegers<float>(kRoundings[2]));
  expectResults(toIntegers<double>(kRoundings[2]));
}

TEST(PtxConvert, NumbersUpwardsInRange) {
  expectResults(toIntegers<float>(kRoundings[3]));
  expectResults(toIntegers<double>(kRoundings[3]));
}

TEST(PtxConvert, FlushedNumbersAreTheIntegerZero) {
  expectResults({
      {"cvt.rpi.s32.f32 %d, %a;", "s32 = f32", {{1e-40f, 1}, {-1e-40f, 0}}},
      {"cvt.rpi.ftz.s32.f32 %d, %a;", "s32 = f32", {{1e-40f, 0}, {1e-30f, 1}}},
      {"cvt.rmi.ftz.s64.f32 %d, %a;", "s64 = f32", {{-1e-40f, 0}, {-1e-30f, -1}}},
      {"cvt.rzi.sat.u8.f32 %d, %a;", "b32 = f32", {{300.f, 255}, {-3.f, 0}}},
  });
}

template <typename F>
void addFromInteger(std::vector<Instruction>& table, const Integer& from, const char* mode, int processor) {
  const std::string to = sizeof(F) == 4 ? "f32" : "f64";
  const auto convert = [&](std::uint64_t a) {
    const volatile std::int64_t asSigned = static_cast<std::int64_t>(from.cut(a));
    const volatile std::uint64_t asUnsigned = static_cast<std::uint64_t>(from.cut(a));
    if (asUnsigned == 0) return F{0};  // clang++ makes it -0 where numbers are rounded downwards
    return rounding(processor, [&] { return from.isSigned ? static_cast<F>(asSigned) : static_cast<F>(asUnsigned); });
  };
  table.push_back({std::string("cvt.") + mode + "." + to + "." + from.name + " %d, %a;", to + " = " + from.inRegister(),
                   singles(kIntegers, convert)});
}

TEST(PtxConvert, IntegersToNumbersRoundedAllWays) {
  std::vector<Instruction> table;
  const Rounding modes[] = {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
  for (const Rounding& mode : modes) {
    for (const Integer& from : integers()) {
      addFromInteger<float>(table, from, mode.name, mode.processor);
      addFromInteger<double>(table, from, mode.name, mode.processor);
    }
  }
  expectResults(table);
}

TEST(PtxConvert, IntegersToNarrowNumbersAndBack) {
  const std::vector<int> values = {0, 1, -1, 7, 2049, -2051, 65504, 1000};
  const auto toHalf = [](int value) { return half(value); };
  const auto infinity = half(std::numeric_limits<double>::infinity());
  expectResults({
      {"cvt.rn.f16.s32 %d, %a;", "f16 = s32", singles(values, toHalf)},
      {"cvt.rn.f16.s64 %d, %a;", "f16 = s64", singles(values, toHalf)},
      {"cvt.rz.f16.s32 %d, %a;", "f16 = s32", {{2049, half(2048)}, {2051, half(2050)}, {-2051, half(-2050)}}},
      {"cvt.rn.f16.u32 %d, %a;", "f16 = u32", {{70000, infinity}, {65504, half(65504)}}},
      {"cvt.rni.s32.f16 %d, %a;",
       "s32 = f16",
       {{half(2.5), 2}, {half(-3.5), -4}, {half(0.25), 0}, {infinity, 0x7fffffff}}},
      {"cvt.rzi.u16.f16 %d, %a;", "b16 = f16", {{half(2.75), 2}, {half(-3.5), 0}, {half(65504), 65504}}},
      {"cvt.rmi.s64.f16 %d, %a;", "s64 = f16", {{half(-2.25), -3}}},
      {"cvt.rn.bf16.s32 %d, %a;", "bf16 = s32", {{3, bfloat(3)}, {257, bfloat(256)}, {-259, bfloat(-260)}}},
      {"cvt.rzi.s32.bf16 %d, %a;", "s32 = bf16", {{bfloat(2.75), 2}, {bfloat(-100.5), -100}}},
  });
}

TEST(PtxConvert, PacksClampedIntegers) {
  expectResults({
      {"cvt.pack.sat.s16.s32 %d, %a, %b;", "b32 = s32 s32", {{{-1, 1}, 0xffff0001u}, {{100000, -100000}, 0x7fff8000u}}},
      {"cvt.pack.sat.u16.s32 %d, %a, %b;", "b32 = s32 s32", {{{-1, 1}, 0x00000001u}, {{100000, 7}, 0xffff0007u}}},
      {"cvt.pack.sat.u8.s32.b32 %d, %a, %b, %c;", "b32 = s32 s32 b32", {{{300, -4, 0x12345678}, 0x5678ff00u}}},
      {"cvt.pack.sat.s8.s32.b32 %d, %a, %b, %c;", "b32 = s32 s32 b32", {{{300, -400, 0x12345678}, 0x56787f80u}}},
      {"cvt.pack.sat.u4.s32.b32 %d, %a, %b, %c;", "b32 = s32 s32 b32", {{{20, -4, 0x12345678}, 0x345678f0u}}},
      {"cvt.pack.sat.s4.s32.b32 %d, %a, %b, %c;", "b32 = s32 s32 b32", {{{20, -2, 0x12345678}, 0x3456787eu}}},
      {"cvt.pack.sat.u2.s32.b32 %d, %a, %b, %c;", "b32 = s32 s32 b32", {{{5, 1, 0x12345678}, 0x2345678du}}},
  });
}

}  // namespace
}  // namespace tutti::softgpu::test
