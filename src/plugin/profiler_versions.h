// Profiler plugins of every version behind the newest one's descriptors.
#pragma once

#include <memory>
#include <string>

#include "base/dl.h"
#include "plugin/profiler.h"

namespace tutti::plugin {

/// A loaded profiler plugin. Any thread; what init() has not succeeded for must not be told of anything.
class ProfilerPlugin {
 public:
  ProfilerPlugin() = default;
  ProfilerPlugin(const ProfilerPlugin&) = delete;
  ProfilerPlugin& operator=(const ProfilerPlugin&) = delete;
  virtual ~ProfilerPlugin() = default;

  virtual const char* name() const = 0;
  /// "profiler X (v6 of /lib/x.so)"
  virtual std::string describe() const = 0;
  /// The plugin's own code.
  virtual ncclResult_t init(void** context, int* mask, const ProfiledComm& comm) = 0;
  /// The event's handle; null: the plugin does not know that kind, wants nothing of it, or has failed.
  virtual void* start(void* context, Event& event) = 0;
  virtual void stop(void* handle) = 0;
  /// States that the version does not know are left out.
  virtual void state(void* handle, EventState state, EventStateArgs* args) = 0;
  virtual void finalize(void* context) = 0;
};

/// The newest version that a library exports; null: none.
std::unique_ptr<ProfilerPlugin> findProfiler(const DlLibrary& library, const std::string& path);

}  // namespace tutti::plugin
