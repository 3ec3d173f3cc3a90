// Floats of 8 and 16 bits, and tf32.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "softgpu/ptx/support/functions.h"

namespace {

/// How a format lays out its bits. Codes count up with the numbers they stand for, so `largest` bounds them.
struct Format {
  int mantissa;
  int bias;
  int signAt;
  std::uint32_t largest;   ///< finite
  std::uint32_t infinite;  ///< what is beyond, where it is not cut to the largest
  std::uint32_t nan;
};
constexpr Format kHalf = {10, 15, 15, 0x7bff, 0x7c00, 0x7fff};
constexpr Format kBFloat = {7, 127, 15, 0x7f7f, 0x7f80, 0x7fff};
constexpr Format kE4M3 = {3, 7, 7, 0x7e, 0x7f, 0x7f};
constexpr Format kE5M2 = {2, 15, 7, 0x7b, 0x7c, 0x7f};
constexpr Format kTensor = {10, 127, 18, 0x3fbff, 0x3fc00, 0x3ffff};

enum Mode : std::uint32_t { Nearest, Zero, Down, Up, Away };
constexpr std::uint32_t kSaturate = 16;

bool roundsUp(Mode mode, bool negative, std::uint64_t whole, double rest) {
  switch (mode) {
    case Nearest:
      return rest > 0.5 || (rest == 0.5 && (whole & 1) != 0);
    case Away:
      return rest >= 0.5;
    case Down:
      return negative && rest > 0;
    case Up:
      return !negative && rest > 0;
    default:
      return false;
  }
}

std::uint32_t beyond(const Format& format, Mode mode, bool negative, bool saturate) {
  const bool stays = mode == Zero || (mode == Down && !negative) || (mode == Up && negative);
  return saturate || stays ? format.largest : format.infinite;
}

std::uint32_t encode(double number, const Format& format, std::uint32_t rounding) {
  const auto mode = static_cast<Mode>(rounding & 15);
  const bool saturate = (rounding & kSaturate) != 0;
  if (std::isnan(number)) return format.nan;
  const bool negative = std::signbit(number);
  const std::uint32_t sign = negative ? 1U << format.signAt : 0;
  const double size = std::fabs(number);
  if (std::isinf(size)) return sign | (saturate ? format.largest : format.infinite);
  if (size == 0) return sign;
  // In units of the last place: a whole number of them, and a rest below one.
  const int least = 1 - format.bias;
  const int exponent = std::max(std::ilogb(size), least);
  const double scaled = std::ldexp(size, format.mantissa - exponent);
  auto whole = static_cast<std::uint64_t>(scaled);
  if (roundsUp(mode, negative, whole, scaled - static_cast<double>(whole))) ++whole;
  // Codes of denormal numbers count from zero; those of the first binade go on where they end.
  const std::uint64_t code = (static_cast<std::uint64_t>(exponent - least) << format.mantissa) + whole;
  if (code > format.largest) return sign | beyond(format, mode, negative, saturate);
  return sign | static_cast<std::uint32_t>(code);
}

float decode(std::uint32_t bits, const Format& format) {
  const std::uint32_t code = bits & ((1U << format.signAt) - 1);
  const float sign = (bits >> format.signAt & 1) != 0 ? -1.0F : 1.0F;
  if (code > format.infinite || (code == format.nan)) return std::nanf("");
  if (code == format.infinite) return sign * HUGE_VALF;
  const std::uint32_t exponent = code >> format.mantissa;
  const std::uint32_t fraction = code & ((1U << format.mantissa) - 1);
  const std::uint32_t whole = exponent == 0 ? fraction : fraction | 1U << format.mantissa;
  const int power = (exponent == 0 ? 1 : static_cast<int>(exponent)) - format.bias - format.mantissa;
  return sign * std::ldexp(static_cast<float>(whole), power);
}

/// a·b + c in a double whose last bit says whether anything is missing: rounding it again comes out right. The product
/// of two halves is exact in a double.
double fmaOdd(float a, float b, float c) {
  const double product = double{a} * double{b};
  const double sum = product + double{c};
  if (!std::isfinite(sum)) return sum;
  const double part = sum - product;
  const double missing = (product - (sum - part)) + (double{c} - part);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &sum, sizeof bits);
  if (missing == 0 || (bits & 1) != 0) return sum;
  const bool outwards = (missing > 0) == (sum > 0);
  bits = outwards ? bits + 1 : bits - 1;
  double result = 0;
  std::memcpy(&result, &bits, sizeof bits);
  return result;
}

}  // namespace

extern "C" {
std::uint32_t ptx_f16_bits(double a, std::uint32_t rounding) {
  return encode(a, kHalf, rounding);
}
std::uint32_t ptx_bf16_bits(double a, std::uint32_t rounding) {
  return encode(a, kBFloat, rounding);
}
std::uint32_t ptx_tf32_bits(float a, std::uint32_t rounding) {
  // A float without its last 13 bits.
  return encode(a, kTensor, rounding) << 13;
}
std::uint32_t ptx_e4m3_bits(float a) {
  return encode(a, kE4M3, Nearest | kSaturate);
}
std::uint32_t ptx_e5m2_bits(float a) {
  return encode(a, kE5M2, Nearest | kSaturate);
}
float ptx_from_e4m3(std::uint32_t bits) {
  return decode(bits, kE4M3);
}
float ptx_from_e5m2(std::uint32_t bits) {
  return decode(bits, kE5M2);
}
float ptx_fma_f16(float a, float b, float c) {
  return decode(encode(fmaOdd(a, b, c), kHalf, Nearest), kHalf);
}
float ptx_fma_bf16(float a, float b, float c) {
  return decode(encode(fmaOdd(a, b, c), kBFloat, Nearest), kBFloat);
}
}
