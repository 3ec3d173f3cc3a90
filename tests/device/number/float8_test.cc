// 8-bit floats against tables made from the definition of the formats, for every value and every binary16.
#include "device/number/float8.h"

#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "device/number/number.h"

namespace tutti::device {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The formats as their definition writes them, by hand.
struct Format {
  int exponentBits;
  int mantissaBits;
  int bias;
  bool hasInfinity;  ///< the largest exponent is kept for infinity and NaN; else only its last mantissa is NaN
};
constexpr Format kE4M3{4, 3, 7, false};
constexpr Format kE5M2{5, 2, 15, true};

double valueOf(const Format& format, unsigned code) {
  const int top = (1 << format.exponentBits) - 1;
  const int mantissa = static_cast<int>(code) & ((1 << format.mantissaBits) - 1);
  const int exponent = static_cast<int>(code >> format.mantissaBits) & top;
  const double sign = code & 0x80 ? -1 : 1;
  if (format.hasInfinity && exponent == top) return mantissa == 0 ? sign * kInfinity : NAN;
  if (!format.hasInfinity && (code & 0x7f) == 0x7f) return NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - format.bias - format.mantissaBits);
  return sign * std::ldexp(mantissa + (1 << format.mantissaBits), exponent - format.bias - format.mantissaBits);
}

/// The code that a saturating conversion to nearest even must give, by comparing distances to all finite values.
class Nearest {
 public:
  explicit Nearest(const Format& format) {
    for (unsigned code = 0; code < 0x80 && std::isfinite(valueOf(format, code)); ++code) {
      values_.push_back(valueOf(format, code));
    }
  }
  unsigned codeOf(double value) const {
    if (std::isnan(value)) return 0x7f;
    const unsigned sign = std::signbit(value) ? 0x80 : 0;
    const double x = std::fabs(value);
    const auto above = static_cast<unsigned>(std::lower_bound(values_.begin(), values_.end(), x) - values_.begin());
    if (above == values_.size()) return sign | (above - 1);
    if (above == 0) return sign;
    const double up = values_[above] - x;
    const double down = x - values_[above - 1];
    const bool takeUp = up < down || (up == down && above % 2 == 0);
    return sign | (takeUp ? above : above - 1);
  }

 private:
  std::vector<double> values_;  ///< by code
};

template <class F>
class Float8Test : public testing::Test {
 protected:
  static constexpr Format kFormat = std::is_same_v<F, Float8E4M3> ? kE4M3 : kE5M2;
  static F of(unsigned code) { return F{static_cast<std::uint8_t>(code)}; }
};
using Formats = testing::Types<Float8E4M3, Float8E5M2>;
TYPED_TEST_SUITE(Float8Test, Formats);

TYPED_TEST(Float8Test, EveryCodeHasTheValueOfTheDefinition) {
  for (unsigned code = 0; code < 256; ++code) {
    const double want = valueOf(this->kFormat, code);
    const float got = toFloat(this->of(code));
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << code;
    } else {
      EXPECT_EQ(static_cast<double>(got), want) << code;
      EXPECT_EQ(std::signbit(got), code >= 0x80) << code;
    }
  }
}

TYPED_TEST(Float8Test, EveryFiniteCodeRoundTripsAndNoInfinityIsMade) {
  for (unsigned code = 0; code < 256; ++code) {
    const float value = toFloat(this->of(code));
    const unsigned back = toFloat8<TypeParam>(value).bits;
    if (std::isnan(value)) {
      EXPECT_EQ(back, 0x7fu) << code;
    } else if (std::isinf(value)) {
      EXPECT_EQ(back, TypeParam::kLargest | (code & 0x80)) << code;
    } else {
      EXPECT_EQ(back, code);
    }
  }
}

TYPED_TEST(Float8Test, EveryHalfRoundsToTheNearestCode) {
  const Nearest nearest(this->kFormat);
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float value = toFloat(Half{static_cast<std::uint16_t>(bits)});
    ASSERT_EQ(toFloat8<TypeParam>(value).bits, nearest.codeOf(value)) << "half " << bits << " = " << value;
  }
}

TYPED_TEST(Float8Test, FloatsBesideEveryMiddleRoundToTheNearestCode) {
  const Nearest nearest(this->kFormat);
  for (unsigned code = 0; code < TypeParam::kLargest; ++code) {
    const float middle = (toFloat(this->of(code)) + toFloat(this->of(code + 1))) / 2;
    for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e30f)}) {
      ASSERT_EQ(toFloat8<TypeParam>(value).bits, nearest.codeOf(value)) << value;
      ASSERT_EQ(toFloat8<TypeParam>(-value).bits, nearest.codeOf(-value)) << -value;
    }
  }
  for (const float value : {0.0f, 1e-45f, 1e-38f, 3e38f, std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(toFloat8<TypeParam>(value).bits, nearest.codeOf(value)) << value;
    EXPECT_EQ(toFloat8<TypeParam>(-value).bits, nearest.codeOf(-value)) << -value;
  }
}

TYPED_TEST(Float8Test, AgreesWithCudasOwnConversionOfHalves) {
  const auto kind = std::is_same_v<TypeParam, Float8E4M3> ? __NV_E4M3 : __NV_E5M2;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    if (std::isnan(toFloat(half))) continue;  // any NaN will do
    const unsigned want = __nv_cvt_halfraw_to_fp8(__half_raw{half.bits}, __NV_SATFINITE, kind);
    ASSERT_EQ(toFloat8<TypeParam>(toFloat(half)).bits, want) << bits;
  }
}

/// What a GPU does: widen both, operate in binary16, round back.
template <class F, class Operation>
F throughHalf(F a, F b, Operation operation) {
  return toFloat8<F>(toFloat(operation(toHalf(toFloat(a)), toHalf(toFloat(b)))));
}

TYPED_TEST(Float8Test, EveryPairGivesTheBitsThatBinary16Gives) {
  const auto plus = [](auto a, auto b) { return add(a, b); };
  const auto times = [](auto a, auto b) { return multiply(a, b); };
  const auto most = [](auto a, auto b) { return larger(a, b); };
  const auto least = [](auto a, auto b) { return lesser(a, b); };
  for (unsigned i = 0; i < 0x10000; ++i) {
    const TypeParam a = this->of(i & 0xff);
    const TypeParam b = this->of(i >> 8);
    ASSERT_EQ(plus(a, b).bits, throughHalf(a, b, plus).bits) << i;
    ASSERT_EQ(times(a, b).bits, throughHalf(a, b, times).bits) << i;
    ASSERT_EQ(most(a, b).bits, throughHalf(a, b, most).bits) << i;
    ASSERT_EQ(least(a, b).bits, throughHalf(a, b, least).bits) << i;
  }
}

TYPED_TEST(Float8Test, ANumberWinsOverNan) {
  const TypeParam nan = this->of(0x7f);
  const TypeParam one = toFloat8<TypeParam>(1.0f);
  for (const TypeParam result : {larger(nan, one), larger(one, nan), lesser(nan, one), lesser(one, nan)}) {
    EXPECT_EQ(result.bits, one.bits);
  }
  EXPECT_TRUE(std::isnan(toFloat(larger(nan, nan))));
  EXPECT_TRUE(std::isnan(toFloat(add(nan, one))));
}

TEST(Float8, SumsSaturateInsteadOfOverflowing) {
  const auto large = toFloat8<Float8E4M3>(448.0f);
  EXPECT_EQ(add(large, large).bits, 0x7e);
  EXPECT_EQ(multiply(large, toFloat8<Float8E4M3>(-2.0f)).bits, 0xfe);
  const auto infinity = Float8E5M2{0x7c};
  EXPECT_EQ(add(infinity, toFloat8<Float8E5M2>(1.0f)).bits, 0x7b);
  EXPECT_TRUE(std::isnan(toFloat(add(infinity, Float8E5M2{0xfc}))));
}

}  // namespace
}  // namespace tutti::device
