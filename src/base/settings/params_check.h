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
/// One of these words in any case, stored in upper case; others give the default.
constexpr Check words(std::string_view list) {
  return {.kind = Check::Kind::Words, .list = list};
}
/// One of these words in this case; others give the default.
constexpr Check exactly(std::string_view list) {
  return {.kind = Check::Kind::Exactly, .list = list};
}

/// "1 to 64", "AUTO, GPU, SOFTGPU": for documents. "" where anything goes.
std::string describe(const Check& check);

}  // namespace tutti::param
