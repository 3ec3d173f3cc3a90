// 16-bit floats against the definition: nearest representable value, ties to even.
#include "device/number/float16_host.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <initializer_list>
#include <ios>

#include "device/number/number.h"

namespace tutti::device {
namespace {

TEST(Float16, HalfRoundTripsEveryValue) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half h{static_cast<std::uint16_t>(bits)};
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const double mantissa = bits & 1023;
    double value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 31) value = mantissa == 0 ? INFINITY : NAN;
    if (bits & 0x8000) value = -value;
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(toFloat(h)) && std::isnan(toFloat(toHalf(toFloat(h))))) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(toFloat(h)), value) << bits;
    ASSERT_EQ(toHalf(toFloat(h)).bits, bits);
  }
}

TEST(Float16, HalfRoundsToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = toFloat(Half{static_cast<std::uint16_t>(bits)});
    const float high = toFloat(Half{static_cast<std::uint16_t>(bits + 1)});
    const float middle = (low + high) / 2;
    ASSERT_EQ(toHalf(middle).bits, bits + bits % 2) << bits;
    ASSERT_EQ(toHalf(std::nextafter(middle, low)).bits, bits);
    ASSERT_EQ(toHalf(std::nextafter(middle, high)).bits, bits + 1);
    ASSERT_EQ(toHalf(-std::nextafter(middle, high)).bits, (bits + 1) | 0x8000);
  }
  EXPECT_EQ(toHalf(65519.0f).bits, 0x7bff);
  EXPECT_EQ(toHalf(65520.0f).bits, 0x7c00) << "the first value that rounds to infinity";
  EXPECT_EQ(toHalf(1e30f).bits, 0x7c00);
}

TEST(Float16, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(toBFloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(toBFloat16(std::bit_cast<float>(0x3f808000u)).bits, 0x3f80) << "tie to even, down";
  EXPECT_EQ(toBFloat16(std::bit_cast<float>(0x3f818000u)).bits, 0x3f82) << "tie to even, up";
  EXPECT_EQ(toBFloat16(std::bit_cast<float>(0x7f7fffffu)).bits, 0x7f80) << "overflow";
  EXPECT_TRUE(std::isnan(toFloat(toBFloat16(std::bit_cast<float>(0x7f800001u))))) << "a NaN stays one";
}

TEST(Float16, ANumberWinsOverNan) {
  const Half nan{0x7e00};
  const Half one{0x3c00};
  EXPECT_EQ(larger(nan, one).bits, one.bits);
  EXPECT_EQ(larger(one, nan).bits, one.bits);
  EXPECT_EQ(lesser(nan, one).bits, one.bits);
  EXPECT_TRUE(std::isnan(toFloat(lesser(nan, nan))));
  EXPECT_EQ(larger(NAN, 2.0f), 2.0f);
  EXPECT_EQ(lesser(2.0, static_cast<double>(NAN)), 2.0);
}

/// Bits of the results of all operations on each pair in both orders.
template <class T, class Bits>
void expectNoOrder(std::initializer_list<Bits> all) {
  for (const Bits x : all) {
    for (const Bits y : all) {
      const auto a = std::bit_cast<T>(x);
      const auto b = std::bit_cast<T>(y);
      const auto bitsOf = [](T value) { return std::bit_cast<Bits>(value); };
      EXPECT_EQ(bitsOf(add(a, b)), bitsOf(add(b, a))) << std::hex << x << ' ' << y;
      EXPECT_EQ(bitsOf(multiply(a, b)), bitsOf(multiply(b, a))) << std::hex << x << ' ' << y;
      EXPECT_EQ(bitsOf(larger(a, b)), bitsOf(larger(b, a))) << std::hex << x << ' ' << y;
      EXPECT_EQ(bitsOf(lesser(a, b)), bitsOf(lesser(b, a))) << std::hex << x << ' ' << y;
    }
  }
}

// Zeros, one, infinities, NaNs of both signs, quiet and signalling, with different payloads.
TEST(Number, TheOrderOfTwoFloatsDoesNotMatter) {
  expectNoOrder<float, std::uint32_t>({0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000,
                                       0xffc00000, 0x7f800001, 0xff812345, 0x7fffffff});
  expectNoOrder<double, std::uint64_t>({0, 0x8000000000000000, 0x3ff0000000000000, 0x7ff0000000000000,
                                        0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001,
                                        0x7ff0000000000001});
  expectNoOrder<Half, std::uint16_t>({0, 0x8000, 0x3c00, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01});
  expectNoOrder<BFloat16, std::uint16_t>({0, 0x8000, 0x3f80, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81});
  expectNoOrder<Float8E4M3, std::uint8_t>({0, 0x80, 0x38, 0x7e, 0x7f, 0xff});
  expectNoOrder<Float8E5M2, std::uint8_t>({0, 0x80, 0x3c, 0x7c, 0xfc, 0x7d, 0xfe});
}

TEST(Number, OfTwoZerosThePositiveOneIsLarger) {
  EXPECT_FALSE(std::signbit(larger(-0.0f, 0.0f)));
  EXPECT_TRUE(std::signbit(lesser(0.0, -0.0)));
}

TEST(Number, IntegersWrap) {
  EXPECT_EQ(add<std::int8_t>(127, 1), -128);
  EXPECT_EQ(multiply<std::int32_t>(1 << 30, 4), 0);
  EXPECT_EQ(multiply<std::int64_t>(-3, 5), -15);
  EXPECT_EQ(larger<std::uint8_t>(200, 100), 200);
  EXPECT_EQ(larger<std::int8_t>(-56, 100), 100);
}

}  // namespace
}  // namespace tutti::device
