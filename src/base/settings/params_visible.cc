// Settings as programs see them that ask for one by name.
#include <algorithm>
#include <array>
#include <type_traits>

#include "base/settings/params.h"
#include "base/settings/params_check.h"

namespace tutti {

namespace {

/// What NCCL shows as well. Not for secrets.
constexpr std::array<std::string_view, 9> kVisible{"NCCL_DEBUG",
                                                   "NCCL_DEBUG_SUBSYS",
                                                   "NCCL_DEBUG_FILE",
                                                   "NCCL_DEBUG_TIMESTAMP_FORMAT",
                                                   "NCCL_DEBUG_TIMESTAMP_LEVELS",
                                                   "NCCL_WARN_ENABLE_DEBUG_INFO",
                                                   "NCCL_SET_THREAD_NAME",
                                                   "NCCL_PARAM_DUMP_ALL",
                                                   "NCCL_NO_CACHE"};

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
void addIfVisible(std::vector<VisibleSetting>& settings, const char* name, const T& value) {
  if (std::find(kVisible.begin(), kVisible.end(), name) == kVisible.end()) return;
  settings.push_back({name, !std::is_same_v<T, std::string>, textOf(value)});
}

}  // namespace

std::vector<VisibleSetting> visibleSettings(const Params& params) {
  std::vector<VisibleSetting> settings;
#define GROUP(Struct, field, title) \
  {                                 \
    const auto& group = params.field;
#define PARAM(type, field, name, fallback, check, help) addIfVisible(settings, name, group.field);
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
