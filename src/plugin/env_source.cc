#include "plugin/env_source.h"

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/never_destroyed.h"
#include "plugin/discovery.h"
#include "plugin/kind.h"
#include "plugin/single.h"

namespace tutti::plugin {

namespace {

/// How long the end of a process waits for a thread inside the plugin.
constexpr auto kPatience = std::chrono::seconds(1);

/// Whether this thread is inside a call of the plugin.
thread_local bool inside = false;

class Inside {
 public:
  Inside() { inside = true; }
  ~Inside() { inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

SingleLibrary openEnvLibrary(const std::string& value) {
  SingleLibrary found;
  if (equalInAnyCase(value, "none")) return found;
  OpenedPlugin opened = openPlugin(kEnvPlugins, value.substr(0, kLongestPluginName));
  found.library = std::move(opened.library);
  found.path = std::move(opened.path);
  found.why = std::move(opened.why);
  return found;
}

}  // namespace

Status EnvSource::load(const Attended& attended) {
  const std::string value = environment_.get("NCCL_ENV_PLUGIN").value_or("");
  SingleLibrary found;
  const Call open = [&] {
    found = openEnvLibrary(value);
    return Status();
  };
  // Where none is named there hardly is one, and nothing that may take long.
  TRY(value.empty() ? open() : attended(open));
  std::unique_ptr<LoadedEnv> plugin;
  if (found.library.valid()) plugin = findEnv(found.library, found.path);
  reportSingleLibrary(kEnvPlugins, value, found, plugin != nullptr);
  if (plugin == nullptr) return {};
  const std::lock_guard lock(calls_);
  const Inside call;
  TRY(attended([&plugin] { return plugin->init(); }));
  library_ = std::move(found.library);
  plugin_ = std::move(plugin);
  return {};
}

Status EnvSource::start(const Attended& attended) {
  if (inside) {
    return fail(
        ncclInvalidUsage,
        "An env plugin has called the library from inside its init or getEnv, which is what the library waits for. "
        "Plugins must not do so");
  }
  const std::lock_guard lock(starting_);
  if (!started_) {
    started_ = load(attended);
    if (!started_->ok()) why_ = lastErrorText();
  } else if (!started_->ok()) {
    return fail(started_->code(), "{}", why_);
  }
  return *started_;
}

void EnvSource::finalize() {
  if (inside) return;
  std::unique_lock lock(calls_, std::try_to_lock);
  for (const Deadline deadline = Deadline::in(kPatience); !lock.owns_lock() && !deadline.expired();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    static_cast<void>(lock.try_lock());
  }
  if (!lock.owns_lock() || plugin_ == nullptr) return;
  const Inside call;
  plugin_->finalize();
  info(kDestroy, "ENV/Plugin: Closing env plugin {}", plugin_->name());
  plugin_.reset();
  library_ = {};
}

std::optional<std::string> EnvSource::get(std::string_view name) const {
  if (inside) return environment_.get(name);
  const std::lock_guard lock(calls_);
  if (plugin_ == nullptr) return environment_.get(name);
  const Inside call;
  const std::string asked(name);  // some answer with what they were asked
  const char* value = plugin_->find(asked.c_str());
  // Taken over before the lock is given back: the next answer for this name may take the place of this one.
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

Status startEnvironment(const EnvSource::Attended& attended) {
  static NeverDestroyed<EnvSource> instance(processEnvironment());
  static std::once_flag before;
  std::call_once(before, [] { passOnSettingsFiles(); });
  TRY(instance.get().start(attended));
  static const bool answers = [] {
    setSettingsSource(&instance.get());
    return std::atexit([] { instance.get().finalize(); }) == 0;
  }();
  static_cast<void>(answers);
  return {};
}

}  // namespace tutti::plugin
