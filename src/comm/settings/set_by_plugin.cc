#include "comm/settings/set_by_plugin.h"

#include <utility>

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

/// One init or one read at a time, as far as patience goes.
struct SetByPlugin::Turn {
  /// `under`: how many of its kind are under way.
  Turn(SetByPlugin& in, int SetByPlugin::*under) : set(in), underWay(set.*under) {
    std::unique_lock lock(set.mutex_);
    set.idle_.wait_for(lock, set.patience_, [this] { return set.inits_ == 0 && set.reads_ == 0; });
    alone = underWay++ == 0;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    const std::lock_guard lock(set.mutex_);
    --underWay;
    set.idle_.notify_all();
  }

  SetByPlugin& set;
  int& underWay;
  bool alone = false;  ///< of its kind, when it began
};

SetByPlugin& SetByPlugin::process() {
  static NeverDestroyed<SetByPlugin> instance;
  return instance.get();
}

void SetByPlugin::note(const Settings& now, const std::string& plugin) {
  for (const auto& [name, value] : now) {
    const auto found = before_.find(name);
    if (found != before_.end() && found->second == value) continue;
    info(kEnv | kInit, "{} set by {} to {}", name, plugin, value);
    names_.insert(name);
  }
}

Status SetByPlugin::during(const EnvReader& env, const std::function<Result<std::string>()>& begin) {
  const Turn turn(*this, &SetByPlugin::inits_);
  if (turn.alone) {
    Settings before = settingsIn(env);
    const std::lock_guard lock(mutex_);
    before_ = std::move(before);
  }
  ASSIGN(const std::string plugin, begin());
  if (plugin.empty()) return {};
  Settings now = settingsIn(env);
  const std::lock_guard lock(mutex_);
  note(now, plugin);
  before_ = std::move(now);
  return {};
}

void SetByPlugin::undisturbed(const std::function<void()>& read) {
  const Turn turn(*this, &SetByPlugin::reads_);
  read();
}

SettingNames SetByPlugin::names() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

}  // namespace tutti::comm
