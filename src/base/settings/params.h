// All settings of the library as one immutable value. The table is params.def; docs/env.md is made from it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"

namespace tutti {

namespace param {
using Flag = bool;
using Int = std::int64_t;
using OptInt = std::optional<std::int64_t>;
using Text = std::string;
}  // namespace param

using SettingNames = std::set<std::string, std::less<>>;

/// Values of all settings, in groups: `params.sockets.ifname`. Default-constructed: all defaults; tests fill in what
/// they need. Passed by const reference.
struct Params {
#define GROUP(Struct, field, title) struct Struct {
#define PARAM(type, field, name, fallback, check, help) param::type field = fallback;
#define END_GROUP(Struct, field) \
  }                              \
  field;
#include "base/settings/params.def"  // NOLINT(bugprone-suspicious-include)

  /// Reads every setting from `env`. Prints an INFO line (ENV) for each that is set and for each bad value.
  static Params read(const EnvReader& env);
  /// The settings of this process: read at the first call, then fixed. Warns once for each unknown name. Any thread.
  static const Params& process();
  /// A copy with the settings read again that may change between communicators, those in NCCL_NO_CACHE and `others`.
  Params forCommunicator(const EnvReader& env, const SettingNames& others = {}) const;
};

/// How an integer setting was written. Neither a value nor out of range: empty.
struct ParsedInteger {
  std::optional<std::int64_t> value;
  bool outOfRange = false;
};
/// strtoll with base 0; what follows the number is ignored and text without a number is 0.
ParsedInteger parseInteger(std::string_view text);

/// One sentence for each NCCL_* or TUTTI_* name in `env` that nobody knows, with the nearest known name.
std::vector<std::string> unknownSettings(const EnvReader& env);
/// The known name that takes the fewest edits from `name`; "" where none is similar.
std::string nearestSetting(std::string_view name);

/// Whether its value must not be shown to anybody, and what is shown in its place.
constexpr bool isSecret(std::string_view name) {
  return name == "TUTTI_COMM_KEY";
}
inline constexpr std::string_view kHidden = "(hidden)";

/// A setting as programs see it that ask for one by name (ncclParamGetParameter and its like).
struct VisibleSetting {
  const char* name;
  bool integer;       ///< else text
  std::string value;  ///< numbers in decimal; "" where one has no value; of a secret kHidden
};
/// All of the table, with their values in `params`.
std::vector<VisibleSetting> visibleSettings(const Params& params);
/// The same as text: a heading, then NAME=VALUE lines.
std::string visibleSettingsDump(const Params& params);

/// docs/env.md.
std::string paramsMarkdown();
/// A table for terminals of all settings: name, value now, default, help.
std::string paramsTable(const EnvReader& env);

}  // namespace tutti
