#include "base/log.h"

#include <array>
#include <atomic>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/host.h"
#include "base/last_errors.h"
#include "base/log_line.h"
#include "base/log_output.h"
#include "base/log_settings.h"
#include "base/never_destroyed.h"
#include "base/standard_output.h"
#include "base/trace.h"

namespace tutti {

constinit std::atomic<bool> detail::mayTrace{true};

namespace {

/// What a thread has to say of its errors. Without a destructor: destructors of static objects come later, and may
/// fail.
struct ThreadErrors {
  ErrorText published{};  ///< also the process's when it was set; "": none
  ErrorText kept{};       ///< while keepsOwn
  int keepsOwn = 0;       ///< how many reasons it has to keep its errors to itself
  int asInfo = 0;
};
thread_local constinit ThreadErrors threadErrors;
static_assert(std::is_trivially_destructible_v<ThreadErrors>);

/// The log of this process: settings parsed at the first line, and where lines go. Any thread.
class Log {
 public:
  bool enabled(LogLevel level, std::uint32_t subsys) {
    return level <= currentLevel() && (subsys & subsys_.load(std::memory_order_relaxed)) != 0;
  }
  void write(LineClass kind, const SourcePlace& where, std::string_view text);
  /// `always`: also where NCCL_DEBUG does not ask for warnings.
  void problem(LineClass kind, bool always, const SourcePlace& where, std::string_view text);
  void publish(std::string_view text);
  void version(bool rankZero, std::string_view text);
  void reset();
  void setSink(LogSink sink, void* context) {
    const std::lock_guard lock(mutex_);
    sink_ = sink;
    sinkContext_ = context;
  }

  std::atomic<int (*)()> device{nullptr};
  LastErrors lastError;
  LastErrors asked;  ///< by lastingErrorText()

 private:
  static constexpr int kUnparsed = -1;

  LogLevel currentLevel() {
    int level = level_.load(std::memory_order_acquire);
    if (level == kUnparsed) level = parse();
    return static_cast<LogLevel>(level);
  }
  int parse();
  std::string stampFor(LineClass kind) const;
  void deliver(LineContext context, std::string_view text);

  std::atomic<int> level_{kUnparsed};
  std::atomic<std::uint32_t> subsys_{kDefaultSubsys};
  std::mutex mutex_;
  LogSettings settings_;  // with all below: guarded by mutex_
  std::string host_;
  LogOutput output_;
  LogSink sink_ = nullptr;
  void* sinkContext_ = nullptr;
  bool versionPrinted_ = false;
  const SteadyClock::time_point start_ = SteadyClock::now();
};

Log& theLog() {
  static NeverDestroyed<Log> log;
  return log.get();
}

int Log::parse() {
  // An env plugin may log while it is asked, outside the lock: what it says then is not printed, for nobody knows yet
  // whether it should be.
  thread_local constinit bool asking = false;
  if (asking) return static_cast<int>(LogLevel::None);
  struct Asking {
    Asking() { asking = true; }
    ~Asking() { asking = false; }
  };
  LogSettings found = [] {
    const Asking now;
    return readLogSettings(settingsSource());
  }();
  const std::lock_guard lock(mutex_);
  int level = level_.load(std::memory_order_relaxed);
  if (level != kUnparsed) return level;
  settings_ = std::move(found);
  host_ = hostName();
  output_.open(settings_.filePath);
  subsys_.store(settings_.subsys, std::memory_order_relaxed);
  level = static_cast<int>(settings_.level);
  level_.store(level, std::memory_order_release);
  detail::mayTrace.store(settings_.level >= LogLevel::Trace, std::memory_order_relaxed);
  return level;
}

void Log::reset() {
  const std::lock_guard lock(mutex_);
  output_.close();
  level_.store(kUnparsed, std::memory_order_release);
  detail::mayTrace.store(true, std::memory_order_relaxed);
}

std::string Log::stampFor(LineClass kind) const {
  if ((settings_.stampLevels >> static_cast<unsigned>(levelOf(kind)) & 1U) == 0) return {};
  std::timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return formatStamp(settings_.stampFormat, now);
}

void Log::deliver(LineContext context, std::string_view text) {
  const std::string line = layOutLine(context, text);
  if (sink_ != nullptr) {
    sink_(sinkContext_, context.kind == LineClass::Warn || context.kind == LineClass::Error, line);
    return;
  }
  output_.write(line);
  const std::string trouble = output_.takeTrouble();
  if (trouble.empty()) return;
  context.kind = LineClass::Warn;
  context.stamp = stampFor(context.kind);
  context.where = std::source_location::current();
  writeToStdout(layOutLine(context, trouble));
}

void Log::write(LineClass kind, const SourcePlace& where, std::string_view text) {
  currentLevel();
  int (*const hook)() = device.load(std::memory_order_acquire);
  const int current = hook != nullptr ? hook() : 0;  // Outside the lock: the driver may log.
  const std::lock_guard lock(mutex_);
  const LineContext context{.kind = kind,
                            .stamp = stampFor(kind),
                            .host = host_,
                            .device = current,
                            .where = where,
                            .elapsedMs = secondsSince(start_) * 1e3};
  deliver(context, text);
}

/// As the thread's last error, and the process's unless the thread keeps its errors to itself.
void Log::publish(std::string_view text) {
  if (threadErrors.keepsOwn > 0) return copyText(text, threadErrors.kept);
  copyText(text, threadErrors.published);
  lastError.set(text);
}

void Log::problem(LineClass kind, bool always, const SourcePlace& where, std::string_view text) {
  publish(text);
  if (threadErrors.asInfo > 0) {
    if (enabled(LogLevel::Info, kAllSubsys)) write(LineClass::Info, where, text);
    return;
  }
  bool shown = always || currentLevel() >= LogLevel::Warn;
  {
    const std::lock_guard lock(mutex_);
    shown = shown || sink_ != nullptr;
    const int info = static_cast<int>(LogLevel::Info);
    if (settings_.infoAfterWarn && level_.load(std::memory_order_relaxed) < info) level_.store(info);
  }
  if (shown) write(kind, where, text);
}

void Log::version(bool rankZero, std::string_view text) {
  const LogLevel level = currentLevel();
  if (level == LogLevel::None || (level < LogLevel::Info && !rankZero)) return;
  {
    const std::lock_guard lock(mutex_);
    if (versionPrinted_) return;
    versionPrinted_ = true;
  }
  write(level >= LogLevel::Info ? LineClass::Info : LineClass::Version, std::source_location::current(), text);
}

/// Mistakes in a call are the caller's: quiet unless asked for. Everything else is printed whatever NCCL_DEBUG says.
LineClass classOf(ncclResult_t code) {
  return code == ncclInvalidArgument || code == ncclInvalidUsage ? LineClass::Warn : LineClass::Error;
}

/// Hands `log` the text, or the format where there is no memory to fill it in. A line for which there is none is left
/// out; the last error is kept before.
template <class LogText>
void withText(fmt::string_view format, fmt::format_args args, LogText&& log) noexcept {
  std::string text;
  std::string_view shown(format.data(), format.size());
  try {
    text = fmt::vformat(format, args);
    shown = text;
  } catch (...) {
  }
  try {
    log(shown);
  } catch (...) {
  }
}

}  // namespace

namespace detail {

bool logEnabled(LogLevel level, std::uint32_t subsys) {
  return theLog().enabled(level, subsys);
}

void logLine(LogLevel level, std::uint32_t subsys, const SourcePlace& where, std::string_view text) {
  if (level == LogLevel::Warn) return theLog().problem(LineClass::Warn, false, where, text);
  if (!logEnabled(level, subsys)) return;
  LineClass kind = LineClass::Info;
  switch (level) {
    case LogLevel::None:
    case LogLevel::Warn:
    case LogLevel::Info:
      break;
    case LogLevel::Version:
      kind = LineClass::Version;
      break;
    case LogLevel::Abort:
      kind = LineClass::Abort;
      break;
    case LogLevel::Trace:
      kind = subsys == kCall ? LineClass::Call : LineClass::Trace;
      break;
  }
  theLog().write(kind, where, text);
}

void logFormatted(LogLevel level, std::uint32_t subsys, const SourcePlace& where, fmt::string_view format,
                  fmt::format_args args) noexcept {
  withText(format, args, [&](std::string_view text) { logLine(level, subsys, where, text); });
}

void logAlarm(const SourcePlace& where, fmt::string_view format, fmt::format_args args) noexcept {
  withText(format, args, [&](std::string_view text) { theLog().problem(LineClass::Warn, true, where, text); });
}

Status failWith(ncclResult_t code, const SourcePlace& where, fmt::string_view format, fmt::format_args args) noexcept {
  const LineClass kind = classOf(code);
  withText(format, args, [&](std::string_view text) { theLog().problem(kind, kind == LineClass::Error, where, text); });
  // Success and "in progress" are no errors: whoever passes them here has lost track.
  const bool isError = code != ncclSuccess && code != ncclInProgress;
  return Status(isError ? code : ncclInternalError);
}

}  // namespace detail

const char* lastErrorText() {
  if (threadErrors.keepsOwn > 0) return threadErrors.kept.data();
  return threadErrors.published[0] != '\0' ? threadErrors.published.data() : theLog().lastError.get();
}

const char* threadErrorText() {
  return threadErrors.published.data();
}

void forgetThreadError() {
  threadErrors.published[0] = '\0';
}

const char* lastingErrorText(std::string_view text) {
  return theLog().asked.set(text);
}

OwnLastError::OwnLastError() {
  if (threadErrors.keepsOwn++ == 0) threadErrors.kept[0] = '\0';
}

OwnLastError::~OwnLastError() {
  --threadErrors.keepsOwn;
}

ErrorsAsInfo::ErrorsAsInfo() {
  ++threadErrors.asInfo;
}

ErrorsAsInfo::~ErrorsAsInfo() {
  --threadErrors.asInfo;
}

void restoreLastError(std::string_view text) {
  if (text.empty()) return;
  // The text may be one of these.
  const std::string restored(text);
  theLog().lastError.set(restored);
  copyText(restored, threadErrors.published);
  if (threadErrors.keepsOwn > 0) copyText(restored, threadErrors.kept);
}

void recallLastError(std::string_view text) {
  if (!text.empty()) theLog().publish(std::string(text));
}

void logVersion(bool rankZero, std::string_view versionText) {
  theLog().version(rankZero, versionText);
}

void resetLog() {
  theLog().reset();
}

void setLogDeviceHook(int (*currentDevice)()) {
  theLog().device.store(currentDevice, std::memory_order_release);
}

void setLogSink(LogSink sink, void* context) {
  theLog().setSink(sink, context);
}

std::string errnoText(int error) {
  std::array<char, 256> buffer{};
  // The GNU strerror_r: returns the text, which need not be in the buffer.
  return fmt::format("{} ({})", ::strerror_r(error, buffer.data(), buffer.size()), error);
}

}  // namespace tutti
