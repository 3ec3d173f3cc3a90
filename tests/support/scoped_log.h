// Settings of the environment, the log's above all, for one test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "base/log.h"

namespace tutti::test {

/// Sets a variable of the environment for its own lifetime.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;
  ~ScopedEnv() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

/// The log at a level, with all subsystems or some, for its own lifetime.
class ScopedLog {
 public:
  explicit ScopedLog(const char* level, const char* subsys = "ALL")
      : level_("NCCL_DEBUG", level), subsys_("NCCL_DEBUG_SUBSYS", subsys) {
    resetLog();
  }
  ~ScopedLog() { resetLog(); }

 private:
  ScopedEnv level_;
  ScopedEnv subsys_;
};

}  // namespace tutti::test
