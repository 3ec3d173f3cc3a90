// What plugins are given to speak with: a logger, and a callback for profilers.
#pragma once

#include <string>

#include "base/log.h"
#include "nccl_net.h"

namespace tutti::plugin {

/// The logger that plugins are given. A message is printed as NCCL_DEBUG and NCCL_DEBUG_SUBSYS say; the text of a WARN
/// is kept for ncclGetLastError even where it is not. Any thread.
void pluginLog(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 5, 6)));

/// Forgets what a plugin warned of on this thread: before a call whose failure will be explained by the next warning.
void forgetPluginWarning();
/// The last warning of a plugin on this thread since it was forgotten; where there is none, the last one of a thread of
/// the plugin's own; "" if nobody said anything. Each is given out once.
std::string takePluginWarning();

/// While it lives, what plugins warn of on this thread is printed as INFO: for calls that may be refused without harm.
class PluginWarningsAsInfo {
 public:
  PluginWarningsAsInfo();
  ~PluginWarningsAsInfo();
  PluginWarningsAsInfo(const PluginWarningsAsInfo&) = delete;
  PluginWarningsAsInfo& operator=(const PluginWarningsAsInfo&) = delete;
};

/// … and so are errors of this library about them: for a part of a plugin that a communicator can do without.
struct PluginIsOptional {
  PluginWarningsAsInfo warnings;
  ErrorsAsInfo errors;
};

}  // namespace tutti::plugin
