// Arithmetic in the rounding modes that LLVM's instructions do not have.
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "softgpu/ptx/support/functions.h"

namespace {

/// In a scope, the processor rounds like this. What is computed there must come from and go to volatile words, or the
/// compiler computes it elsewhere.
class Rounding {
 public:
  explicit Rounding(std::uint32_t mode) : before_(std::fegetround()) {
    static constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(kModes[mode & 3]);
  }
  ~Rounding() { std::fesetround(before_); }
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;

 private:
  int before_;
};

template <class To, class Compute, class... From>
To rounded(std::uint32_t mode, const Compute& compute, From... from) {
  const Rounding rounding(mode);
  volatile To result = [&](volatile From... given) { return static_cast<To>(compute(From{given}...)); }(from...);
  return result;
}

constexpr auto kAdd = [](auto a, auto b) { return a + b; };
constexpr auto kSub = [](auto a, auto b) { return a - b; };
constexpr auto kMul = [](auto a, auto b) { return a * b; };
constexpr auto kDiv = [](auto a, auto b) { return a / b; };
constexpr auto kFma = [](auto a, auto b, auto c) { return std::fma(a, b, c); };
constexpr auto kSqrt = [](auto a) { return std::sqrt(a); };

template <class Integer>
double odd(Integer a) {
  std::uint32_t towardsZero = 1;
  const double cut = rounded<double>(
      towardsZero, [](auto x) { return static_cast<double>(x); }, a);
  if (static_cast<Integer>(cut) == a) return cut;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &cut, sizeof bits);
  bits |= 1;
  double result = 0;
  std::memcpy(&result, &bits, sizeof bits);
  return result;
}

template <class To>
constexpr auto kConvert = [](auto a) { return static_cast<To>(a); };

}  // namespace

extern "C" {
float ptx_add_f32(float a, float b, std::uint32_t rounding) {
  return rounded<float>(rounding, kAdd, a, b);
}
float ptx_sub_f32(float a, float b, std::uint32_t rounding) {
  return rounded<float>(rounding, kSub, a, b);
}
float ptx_mul_f32(float a, float b, std::uint32_t rounding) {
  return rounded<float>(rounding, kMul, a, b);
}
float ptx_div_f32(float a, float b, std::uint32_t rounding) {
  return rounded<float>(rounding, kDiv, a, b);
}
float ptx_fma_f32(float a, float b, float c, std::uint32_t rounding) {
  return rounded<float>(rounding, kFma, a, b, c);
}
float ptx_sqrt_f32(float a, std::uint32_t rounding) {
  return rounded<float>(rounding, kSqrt, a);
}
double ptx_add_f64(double a, double b, std::uint32_t rounding) {
  return rounded<double>(rounding, kAdd, a, b);
}
double ptx_sub_f64(double a, double b, std::uint32_t rounding) {
  return rounded<double>(rounding, kSub, a, b);
}
double ptx_mul_f64(double a, double b, std::uint32_t rounding) {
  return rounded<double>(rounding, kMul, a, b);
}
double ptx_div_f64(double a, double b, std::uint32_t rounding) {
  return rounded<double>(rounding, kDiv, a, b);
}
double ptx_fma_f64(double a, double b, double c, std::uint32_t rounding) {
  return rounded<double>(rounding, kFma, a, b, c);
}
double ptx_sqrt_f64(double a, std::uint32_t rounding) {
  return rounded<double>(rounding, kSqrt, a);
}
float ptx_f64_to_f32(double a, std::uint32_t rounding) {
  return rounded<float>(rounding, kConvert<float>, a);
}
float ptx_signed_to_f32(std::int64_t a, std::uint32_t rounding) {
  return rounded<float>(rounding, kConvert<float>, a);
}
float ptx_unsigned_to_f32(std::uint64_t a, std::uint32_t rounding) {
  // By way of an odd double: compilers convert numbers beyond 63 bits by halving them, which rounds to the nearest.
  return rounded<float>(rounding, kConvert<float>, odd(a));
}
double ptx_signed_to_f64(std::int64_t a, std::uint32_t rounding) {
  return rounded<double>(rounding, kConvert<double>, a);
}
double ptx_unsigned_to_f64(std::uint64_t a, std::uint32_t rounding) {
  const double high = static_cast<double>(a >> 32) * 4294967296.0;
  return rounded<double>(rounding, kAdd, high, static_cast<double>(a & 0xffffffff));
}
double ptx_signed_to_odd(std::int64_t a) {
  return odd(a);
}
double ptx_unsigned_to_odd(std::uint64_t a) {
  const double high = static_cast<double>(a >> 32) * 4294967296.0;
  std::uint64_t bits = 0;
  const double cut = rounded<double>(1, kAdd, high, static_cast<double>(a & 0xffffffff));
  if (static_cast<std::uint64_t>(cut) == a) return cut;
  std::memcpy(&bits, &cut, sizeof bits);
  bits |= 1;
  double result = 0;
  std::memcpy(&result, &bits, sizeof bits);
  return result;
}
}
