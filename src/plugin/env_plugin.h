// Env plugins of loaded libraries, of any version of the interface.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/dl.h"
#include "base/status.h"

namespace tutti::plugin {

/// A plugin that answers in place of the environment. One call at a time; the library must outlive it.
class LoadedEnv {
 public:
  virtual ~LoadedEnv() = default;
  virtual std::string_view name() const = 0;
  virtual int version() const = 0;
  /// Once, before all else. Fails where the plugin does, or has no getEnv after it.
  virtual Status init() = 0;
  /// Null: not set. The plugin's text, good until the same name is asked for again.
  virtual const char* find(const char* setting) = 0;
  /// Once, after an init that succeeded; an error is a warning.
  virtual void finalize() = 0;
};

/// The newest env interface of a library; null: it has none. `path` stands in messages. Prints what it finds.
std::unique_ptr<LoadedEnv> findEnv(const DlLibrary& library, const std::string& path);

}  // namespace tutti::plugin
