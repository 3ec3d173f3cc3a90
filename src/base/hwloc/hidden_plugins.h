// Keeps hwloc from opening its plugins.
#pragma once

#include <mutex>

namespace tutti {

struct EnvironmentCopy;

/// hwloc opens all of its plugins (CUDA, NVML, OpenCL, GL …) as soon as a process begins its first topology, before
/// components can be refused; only the environment keeps it from that. While one of these lives, whoever looks finds a
/// HWLOC_PLUGINS_PATH with nothing in it, in front of the application's. Meant for the microseconds of one call.
///
/// Nothing that other threads may be reading is changed or freed: `environ` points to a copy meanwhile. What another
/// thread sets or unsets in that time stays so, and what was set for hwloc is taken out of the environment that has it.
class HiddenPlugins {
 public:
  HiddenPlugins();
  HiddenPlugins(const HiddenPlugins&) = delete;
  ~HiddenPlugins();

 private:
  std::unique_lock<std::mutex> lock_;
  char** before_;
  EnvironmentCopy& with_;
};

}  // namespace tutti
