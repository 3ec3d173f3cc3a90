// What values a setting may have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::param {

/// The rule of one row of params.def.
struct Check {
  enum class Kind { Any, Between, Clamp, Words, Exactly };
  Kind kind = Kind::Any;
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  std::int64_t step = 1;
  std::string_view list = {};  ///< comma separated
};

constexpr Check any() {
  return {};
}
/// Other values give the default.
constexpr Check between(std::int64_t lo, std::int64_t hi) {
  return {.kind = Check::Kind::Between, .lo = lo, .hi = hi};
}
/// Other values give the nearest bound.
constexpr Check clampTo(std::int64_t lo, std::int64_t hi) {
  return {.kind = Check::Kind::Clamp, .lo = lo, .hi = hi};
}
/// Other values give the nearest multiple of `step` between the bounds, rounded down.
constexpr Check stepsOf(std::int64_t lo, std::int64_t hi, std::int64_t step) {
  return {.kind = Check::Kind::Clamp, .lo = lo, .hi = hi, .step = step};
}
/// One of these words in any case, stored in upper case; others give the default.
constexpr Check words(std::string_view list) {
  return {.kind = Check::Kind::Words, .list = list};
}
/// One of these words in this case; others give the default.
constexpr Check exactly(std::string_view list) {
  return {.kind = Check::Kind::Exactly, .list = list};
}

/// "1 to 64", "GROUP, PARALLEL": for documents. "" where anything goes.
std::string describe(const Check& check);

}  // namespace tutti::param
