#include "plugin/plugin_log.h"

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string_view>

#include "base/log.h"
#include "base/never_destroyed.h"

namespace tutti::plugin {

namespace {

using Text = std::array<char, 1024>;

struct Warning {
  bool fresh = false;
  Text text{};

  void keep(const Text& words) {
    text = words;
    fresh = true;
  }
};

/// Not a string: plugins may warn from destructors of threads, after strings of the thread are gone.
thread_local Warning ownWarning;
thread_local int warningsAsInfo = 0;

struct SharedWarning {
  std::mutex mutex;
  Warning last;
};

SharedWarning& sharedWarning() {
  static NeverDestroyed<SharedWarning> shared;
  return shared.get();
}

void warnFor(const SourcePlace& where, std::uint32_t subsys, const Text& text) {
  ownWarning.keep(text);
  {
    SharedWarning& shared = sharedWarning();
    const std::lock_guard lock(shared.mutex);
    shared.last.keep(text);
  }
  if (warningsAsInfo > 0) {
    if (detail::logEnabled(LogLevel::Info, subsys)) detail::logLine(LogLevel::Info, subsys, where, text.data());
    return;
  }
  const bool warnsAreShown = detail::logEnabled(LogLevel::Warn, kAllSubsys);
  if (warnsAreShown && !detail::logEnabled(LogLevel::Warn, subsys)) {
    recallLastError(text.data());
  } else {
    detail::logLine(LogLevel::Warn, subsys, where, text.data());
  }
}

}  // namespace

void pluginLog(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* format, ...) {
  const auto subsys = static_cast<std::uint32_t>(flags);
  const auto wanted = static_cast<LogLevel>(level);
  const bool known = level > NCCL_LOG_NONE && level <= NCCL_LOG_TRACE;
  if (!known || format == nullptr || (level != NCCL_LOG_WARN && !detail::logEnabled(wanted, subsys))) return;

  Text text{};
  std::va_list arguments;
  va_start(arguments, format);
  if (std::vsnprintf(text.data(), text.size(), format, arguments) < 0) text = {"(a message that cannot be printed)"};
  va_end(arguments);

  const char* place = file != nullptr ? file : "";
  const auto lineNumber = static_cast<std::uint32_t>(line < 0 ? 0 : line);
  if (level == NCCL_LOG_WARN) {
    warnFor(SourcePlace(place, lineNumber, ""), subsys, text);
  } else {
    detail::logLine(wanted, subsys, SourcePlace(place, lineNumber, place), text.data());
  }
}

void forgetPluginWarning() {
  if (ownWarning.fresh) ownWarning.fresh = false;
}

PluginWarningsAsInfo::PluginWarningsAsInfo() {
  ++warningsAsInfo;
}
PluginWarningsAsInfo::~PluginWarningsAsInfo() {
  --warningsAsInfo;
}

std::string takePluginWarning() {
  SharedWarning& shared = sharedWarning();
  const std::lock_guard lock(shared.mutex);
  const Warning& best = ownWarning.fresh ? ownWarning : shared.last;
  std::string text = best.fresh ? best.text.data() : "";
  ownWarning.fresh = false;
  shared.last.fresh = false;
  return text;
}

}  // namespace tutti::plugin
