#include "base/settings/params.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/log.h"
#include "base/never_destroyed.h"
#include "base/settings/params_check.h"
#include "base/standard_output.h"

namespace tutti {

namespace {

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
}

bool listed(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == word) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

std::string_view olderName(std::string_view name) {
  if (name == "NCCL_MIN_NCHANNELS") return "NCCL_MIN_NRINGS";
  if (name == "NCCL_MAX_NCHANNELS") return "NCCL_MAX_NRINGS";
  if (name == "NCCL_NET_GDR_LEVEL") return "NCCL_IB_GDR_LEVEL";
  return {};
}

/// Reads single settings. Quiet: without INFO lines.
class Reader {
 public:
  Reader(const EnvReader& env, bool quiet) : env_(env), quiet_(quiet) {}

  void read(std::string_view name, const param::Check& check, std::int64_t& value) const {
    readInteger(name, check, std::to_string(value), [&](std::int64_t v) { value = v; });
  }
  void read(std::string_view name, const param::Check& check, std::optional<std::int64_t>& value) const {
    readInteger(name, check, "unset", [&](std::int64_t v) { value = v; });
  }
  void read(std::string_view name, const param::Check& check, bool& value) const {
    readInteger(name, check, std::to_string(static_cast<int>(value)), [&](std::int64_t v) { value = v != 0; });
  }
  void read(std::string_view name, const param::Check& check, std::string& value) const;

 private:
  std::optional<std::string> find(std::string_view name) const {
    if (auto text = env_.get(name)) return text;
    const std::string_view older = olderName(name);
    return older.empty() ? std::nullopt : env_.get(older);
  }
  template <class Set>
  void readInteger(std::string_view name, const param::Check& check, const std::string& fallback, Set set) const;

  const EnvReader& env_;
  bool quiet_;
};

/// The value that a rule makes of another one; nothing: the default.
std::optional<std::int64_t> allowed(const param::Check& check, std::int64_t value) {
  if (check.kind == param::Check::Kind::Clamp) return std::clamp(value, check.lo, check.hi);
  if (check.kind == param::Check::Kind::Between && (value < check.lo || value > check.hi)) return std::nullopt;
  return value;
}

template <class Set>
void Reader::readInteger(std::string_view name, const param::Check& check, const std::string& fallback, Set set) const {
  const auto text = find(name);
  if (!text || text->empty()) return;
  const ParsedInteger parsed = parseInteger(*text);
  const auto value = parsed.value ? allowed(check, *parsed.value) : std::nullopt;
  if (!value) {
    // The default may be written out too ("-2"), although it lies outside the bounds.
    if (!quiet_) info(kEnv, "Invalid value {} for {}, using default {}.", *text, name, fallback);
    return;
  }
  if (*value != *parsed.value) {
    if (std::to_string(*parsed.value) == fallback) return;
    if (!quiet_) info(kEnv, "Invalid value {} for {}, using {}.", *text, name, *value);
  } else if (!quiet_) {
    info(kEnv, "{} set by environment to {}.", name, *value);
  }
  set(*value);
}

void Reader::read(std::string_view name, const param::Check& check, std::string& value) const {
  const auto text = find(name);
  if (!text) return;
  const bool anyCase = check.kind == param::Check::Kind::Words;
  std::string word = anyCase ? upper(*text) : *text;
  if ((anyCase || check.kind == param::Check::Kind::Exactly) && !listed(check.list, word)) {
    if (!quiet_ && !text->empty()) {
      info(kEnv, "Invalid value {} for {}, using default {}.", *text, name, value.empty() ? "unset" : value);
    }
    return;
  }
  if (!quiet_ && !word.empty())
    info(kEnv, "{} set by environment to {}", name, isSecret(name) ? kHidden : std::string_view(word));
  value = std::move(word);
}

}  // namespace

ParsedInteger parseInteger(std::string_view text) {
  if (text.empty()) return {};
  const std::string terminated(text);
  errno = 0;
  const long long value = std::strtoll(terminated.c_str(), nullptr, 0);
  if (errno == ERANGE) return {.value = std::nullopt, .outOfRange = true};
  return {.value = value, .outOfRange = false};
}

Params Params::read(const EnvReader& env) {
  Params params;
  const Reader reader(env, false);
  using namespace param;
#define GROUP(Struct, field, title) \
  {                                 \
    auto& group = params.field;
#define PARAM(type, field, name, fallback, check, help) reader.read(name, check, group.field);
#define END_GROUP(Struct, field) }
#include "base/settings/params.def"  // NOLINT(bugprone-suspicious-include)
  return params;
}

Params Params::forCommunicator(const EnvReader& env, const SettingNames& others) const {
  Params params = *this;
  const Params defaults;
  const Reader reader(env, true);
  const auto again = [&](std::string_view name, bool always) {
    return always || misc.noCache == "ALL" || listed(misc.noCache, name) || others.contains(name);
  };
  using namespace param;
#define GROUP(Struct, field, title) \
  {                                 \
    auto& group = params.field;     \
    const auto& initial = defaults.field;
#define PARAM_ROW(name, check, field, always) \
  if (again(name, always)) {                  \
    group.field = initial.field;              \
    reader.read(name, check, group.field);    \
  }
#define PARAM(type, field, name, fallback, check, help) PARAM_ROW(name, check, field, false)
#define PARAM_PER_COMM(type, field, name, fallback, check, help) PARAM_ROW(name, check, field, true)
#define END_GROUP(Struct, field) }
#include "base/settings/params.def"  // NOLINT(bugprone-suspicious-include)
#undef PARAM_ROW
  return params;
}

const Params& Params::process() {
  static NeverDestroyed<Params> params([] {
    const LayeredEnv& env = processEnvironment();
    // Here, for the library has no thread yet: this is what it does first.
    passOnSettingsFiles();
    for (const std::string& sentence : env.unusableFiles()) warn("{}", sentence);
    for (const std::string& sentence : unknownSettings(env)) warn("{}", sentence);
    Params read = Params::read(settingsSource());
    if (read.misc.paramDumpAll) {
      writeToStdout(visibleSettingsDump(read));
    }
    return read;
  }());
  return params.get();
}

}  // namespace tutti
