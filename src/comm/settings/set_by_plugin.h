// Settings that networks have put into the environment of the process in their init.
#pragma once

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
  static SetByPlugin& process();
  /// Runs `begin`, which begins a network and returns its name. What `env` says of names that begin with NCCL_ or
  /// TUTTI_, and did not say before, is the network's doing: it is read again at each communicator from now on, also
  /// where it is read once otherwise. An INFO line tells of each. One call at a time, others wait: of two communicators
  /// that begin together neither goes on before it is known what the network has set for the other.
  Status during(const EnvReader& env, const std::function<Result<std::string>()>& begin);
  SettingNames names() const;

 private:
  void note(const Settings& before, const Settings& now, const std::string& network);

  std::mutex oneByOne_;
  mutable std::mutex mutex_;
  SettingNames names_;  // guarded by mutex_
};

}  // namespace tutti::comm
