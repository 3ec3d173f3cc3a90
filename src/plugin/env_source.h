// Where the settings of the library come from, with an env plugin or without.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dl.h"
#include "base/environment.h"
#include "base/status.h"
#include "plugin/env_plugin.h"

namespace tutti::plugin {

/// The plugin that NCCL_ENV_PLUGIN names, or libnccl-env.so; where there is none, the environment. Any thread; calls of
/// the plugin come one at a time.
class EnvSource : public EnvReader {
 public:
  using Call = std::function<Status()>;
  /// Makes a call that may take long.
  using Attended = std::function<Status(const Call& call)>;
  static Status unattended(const Call& call) { return call(); }

  /// `environment` is borrowed: it names the plugin, and answers before start(), without a plugin, and after
  /// finalize().
  explicit EnvSource(const EnvReader& environment) : environment_(environment) {}

  /// Loads and initialises the plugin, at the first call; the others wait for that and return the same. Without a
  /// plugin it succeeds, with one WARN where the user has named one that cannot be loaded. Fails where the plugin's
  /// init does, and where that calls back into the library. `attended`: opens the library that is named, and runs the
  /// plugin's init; what it does beside must read no settings.
  Status start(const Attended& attended = unattended);
  /// Ends the plugin and closes its library, once. Waits for at most a second for a thread that is inside the plugin,
  /// and leaves it alone where that does not return.
  void finalize();

  /// What the plugin asks itself, from inside its calls, the environment answers.
  std::optional<std::string> get(std::string_view name) const override;
  /// Those of the environment: plugins have no list.
  std::vector<std::string> names() const override { return environment_.names(); }

 private:
  Status load(const Attended& attended);

  const EnvReader& environment_;
  std::mutex starting_;
  std::optional<Status> started_;      // with why_: guarded by starting_
  std::string why_;                    ///< the words of an init that failed
  mutable std::mutex calls_;           ///< held in every call of the plugin
  DlLibrary library_;                  // with plugin_: guarded by calls_
  std::unique_ptr<LoadedEnv> plugin_;  ///< null: the environment answers
};

/// What a process does first: passes on the settings of files, starts its EnvSource, lets it answer from now on, and
/// ends it when the process does. Once; later calls return what the first one did. Any thread.
/// `attended`: as for EnvSource::start().
Status startEnvironment(const EnvSource::Attended& attended = EnvSource::unattended);

}  // namespace tutti::plugin
