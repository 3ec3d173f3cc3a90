#include "comm/settings/set_by_plugin.h"

#include "base/log.h"
#include "base/never_destroyed.h"

namespace tutti::comm {

namespace {

Settings settingsIn(const EnvReader& env) {
  Settings settings;
  for (const std::string& name : env.names()) {
    if (!name.starts_with("NCCL_") && !name.starts_with("TUTTI_")) continue;
    if (auto value = env.get(name)) settings[name] = std::move(*value);
  }
  return settings;
}

}  // namespace

SetByPlugin& SetByPlugin::process() {
  static NeverDestroyed<SetByPlugin> instance;
  return instance.get();
}

void SetByPlugin::note(const Settings& before, const Settings& now, const std::string& network) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, value] : now) {
    const auto found = before.find(name);
    if (found != before.end() && found->second == value) continue;
    info(kEnv | kNet, "{} set by network {} to {}", name, network, value);
    names_.insert(name);
  }
}

Status SetByPlugin::during(const EnvReader& env, const std::function<Result<std::string>()>& begin) {
  const std::lock_guard lock(oneByOne_);
  const Settings before = settingsIn(env);
  ASSIGN(const std::string network, begin());
  note(before, settingsIn(env), network);
  return {};
}

SettingNames SetByPlugin::names() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

}  // namespace tutti::comm
