// Settings as programs see them that ask for one by name.
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/settings/params.h"
#include "base/settings/params_check.h"

namespace tutti {

namespace {

std::string textOf(const std::string& text) {
  return text;
}
std::string textOf(std::int64_t number) {
  return std::to_string(number);
}
std::string textOf(const std::optional<std::int64_t>& number) {
  return number ? textOf(*number) : std::string();
}

template <class T>
void add(std::vector<VisibleSetting>& settings, const char* name, const T& value) {
  std::string text = textOf(value);
  if (isSecret(name) && !text.empty()) text = kHidden;
  settings.push_back({name, !std::is_same_v<T, std::string>, std::move(text)});
}

}  // namespace

std::vector<VisibleSetting> visibleSettings(const Params& params) {
  std::vector<VisibleSetting> settings;
#define GROUP(Struct, field, title) \
  {                                 \
    const auto& group = params.field;
#define PARAM(type, field, name, fallback, check, help) add(settings, name, group.field);
#define END_GROUP(Struct, field) }
#include "base/settings/params.def"  // NOLINT(bugprone-suspicious-include)
  return settings;
}

std::string visibleSettingsDump(const Params& params) {
  std::string text = "=== ncclParam Registry Dump ===\n";
  for (const VisibleSetting& setting : visibleSettings(params)) text += setting.name + ("=" + setting.value) + "\n";
  return text;
}

}  // namespace tutti
