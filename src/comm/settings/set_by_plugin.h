// Settings that plugins have put into the environment of the process in their init.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "base/environment.h"
#include "base/settings/params.h"
#include "base/status.h"

namespace tutti::comm {

/// By name, since the process began. Any thread.
class SetByPlugin {
 public:
  /// How long one init of a plugin waits for another one, and who reads settings for all of them: a plugin may make its
  /// init wait for that of another communicator of the process, or not return at all.
  static constexpr std::chrono::milliseconds kPatience{5000};

  explicit SetByPlugin(std::chrono::milliseconds patience = kPatience) : patience_(patience) {}
  static SetByPlugin& process();
  /// Runs `begin`, which begins a plugin and returns what it is called: "network eager", or "" where there is none.
  /// What `env` says of names that begin with NCCL_ or TUTTI_, and did not say before, is the plugin's doing: it is
  /// read again at each communicator from now on, also where it is read once otherwise. An INFO line tells of each. Of
  /// two communicators that begin together neither goes on before it is known what the plugin has set for the other.
  Status during(const EnvReader& env, const std::function<Result<std::string>()>& begin);
  /// Runs `read` while no plugin is in its init, which may change the environment under its hands.
  void undisturbed(const std::function<void()>& read);
  SettingNames names() const;

 private:
  struct Turn;

  void note(const Settings& now, const std::string& plugin);

  const std::chrono::milliseconds patience_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  int inits_ = 0;       // guarded by mutex_: under way
  int reads_ = 0;       // likewise
  Settings before_;     // likewise: the environment before the first of those inits
  SettingNames names_;  // likewise
};

}  // namespace tutti::comm
