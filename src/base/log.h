// Log lines in the shapes users and tools know from NCCL, and fail(): the only birth place of an error.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/status.h"

namespace tutti {

/// NCCL_DEBUG levels, in the order of spec. `Error` lines (fail()) are printed at every level; see docs/env.md.
enum class LogLevel : std::uint8_t { None, Version, Warn, Info, Abort, Trace };

/// NCCL_DEBUG_SUBSYS bits; a line may carry several and is printed if any is enabled.
enum Subsys : std::uint32_t {
  kInit = 0x1,
  kColl = 0x2,
  kP2p = 0x4,
  kShm = 0x8,
  kNet = 0x10,
  kGraph = 0x20,
  kTuning = 0x40,
  kEnv = 0x80,
  kAlloc = 0x100,
  kCall = 0x200,
  kProxy = 0x400,
  kNvls = 0x800,
  kBootstrap = 0x1000,
  kReg = 0x2000,
  kProfile = 0x4000,
  kRas = 0x8000,
  kDestroy = 0x10000,
  kAllocHost = 0x20000,
  kAllSubsys = 0xffffffff,
};

/// A place in a source file: of our own sources, or what somebody else's message says of itself. The texts are
/// borrowed.
struct SourcePlace {
  const char* file = "";
  const char* function = "";  ///< as the compiler spells it; "": not known, lines name the file alone
  std::uint32_t line = 0;

  SourcePlace() = default;
  SourcePlace(const char* f, std::uint32_t l, const char* name) : file(f), function(name), line(l) {}
  SourcePlace(const std::source_location& where)  // NOLINT(google-explicit-constructor): is one
      : file(where.file_name()), function(where.function_name()), line(where.line()) {}
};

/// A format string together with the place in the source that wrote it.
template <class... Args>
struct LocatedFormat {
  fmt::format_string<Args...> text;
  std::source_location where;
  template <class S>
  consteval LocatedFormat(const S& s, std::source_location w = std::source_location::current())  // NOLINT
      : text(s), where(w) {}
};
template <class... Args>
using Format = LocatedFormat<std::type_identity_t<Args>...>;

namespace detail {
bool logEnabled(LogLevel level, std::uint32_t subsys);
/// Also for messages of others (plugins), which say themselves where they were written.
void logLine(LogLevel level, std::uint32_t subsys, const SourcePlace& where, std::string_view text);
/// Without host memory for it, the line is left out, and the text that is kept is the format: whoever reports that must
/// not fail for the same reason.
void logFormatted(LogLevel level, std::uint32_t subsys, const SourcePlace& where, fmt::string_view format,
                  fmt::format_args args) noexcept;
void logAlarm(const SourcePlace& where, fmt::string_view format, fmt::format_args args) noexcept;
Status failWith(ncclResult_t code, const SourcePlace& where, fmt::string_view format, fmt::format_args args) noexcept;
}  // namespace detail

/// Gives birth to an error: logs it once (WARN shape, ERROR class: printed at every level that NCCL_DEBUG can name,
/// see docs/env.md), keeps the text for ncclGetLastError, and returns its Status. Callers only pass it on with TRY.
/// Text: what failed, on which rank/host/device where known, the system's words, the likely cause, the remedy.
template <class... Args>
Status fail(ncclResult_t code, Format<Args...> format, Args&&... args) noexcept {
  return detail::failWith(code, format.where, format.text, fmt::make_format_args(args...));
}

/// Something is off but the operation goes on. Also kept for ncclGetLastError.
template <class... Args>
void warn(Format<Args...> format, Args&&... args) noexcept {
  detail::logFormatted(LogLevel::Warn, kAllSubsys, format.where, format.text, fmt::make_format_args(args...));
}

/// The same, printed at every level: what even those have to know who have asked for nothing.
template <class... Args>
void alarm(Format<Args...> format, Args&&... args) noexcept {
  detail::logAlarm(format.where, format.text, fmt::make_format_args(args...));
}

template <class... Args>
void info(std::uint32_t subsys, Format<Args...> format, Args&&... args) noexcept {
  if (!detail::logEnabled(LogLevel::Info, subsys)) return;
  detail::logFormatted(LogLevel::Info, subsys, format.where, format.text, fmt::make_format_args(args...));
}

template <class... Args>
void logTrace(std::uint32_t subsys, Format<Args...> format, Args&&... args) noexcept {
  if (!detail::logEnabled(LogLevel::Trace, subsys)) return;
  detail::logFormatted(LogLevel::Trace, subsys, format.where, format.text, fmt::make_format_args(args...));
}

/// Text of the most recent error or warning of the calling thread, at most 1023 characters; where it has none, of the
/// process; "" initially. So what a thread reads after its own failure is no other thread's. Valid until the thread's
/// next error; the process's text may change under a reader.
const char* lastErrorText();

/// The first half of that: "" where the thread has had no error since forgetThreadError().
const char* threadErrorText();

/// The calling thread has no error of its own any more. At the border to C, where a call begins, and where it succeeds.
void forgetThreadError();

/// A copy of `text` for callers who keep the pointer for ever: it changes only after 15 other texts were asked for.
const char* lastingErrorText(std::string_view text);

/// Makes a text that was reported before the last error of the process and of this thread again, so that a later echo
/// of the same failure does not hide its cause. Prints nothing; an empty text changes nothing. Any thread.
void restoreLastError(std::string_view text);

/// The same for lastErrorText() on this thread alone where it keeps its errors to itself (OwnLastError): for a reason
/// that is only half of what will be published. Elsewhere as restoreLastError().
void recallLastError(std::string_view text);

/// While it lives, the errors that this thread reports are its own last error (lastErrorText() on this thread), not the
/// process's: for threads of the library whose errors may be echoes of one that the application is about to read. What
/// is no echo is published with restoreLastError(). One at a time on a thread.
class OwnLastError {
 public:
  OwnLastError();
  ~OwnLastError();
  OwnLastError(const OwnLastError&) = delete;
  OwnLastError& operator=(const OwnLastError&) = delete;
};

/// While it lives, errors and warnings of this thread are printed as INFO and are its own last error: for what may fail
/// without harm. Why it did is in lastErrorText() until then; of one within another, until the outer one ends.
class ErrorsAsInfo {
 public:
  ErrorsAsInfo();
  ~ErrorsAsInfo();
  ErrorsAsInfo(const ErrorsAsInfo&) = delete;
  ErrorsAsInfo& operator=(const ErrorsAsInfo&) = delete;

 private:
  const OwnLastError own_;
};

/// Prints the bare version line (`NCCL version …`) as NCCL_DEBUG asks. `rankZero`: this process initialises rank 0.
void logVersion(bool rankZero, std::string_view versionText);

/// Forgets the parsed NCCL_DEBUG* settings and closes the debug file; they are read again at the next line.
void resetLog();

/// Tells the log which CUDA device the calling thread has current (the [DEV] column). Set by gpu/ at start-up so
/// that base needs no CUDA; nullptr restores "0".
void setLogDeviceHook(int (*currentDevice)());

/// A sink that sees each finished line instead of the debug file; nullptr restores the file. For LogCapture in tests.
/// `isProblem` is true for WARN and ERROR lines, whether or not NCCL_DEBUG would have printed them.
using LogSink = void (*)(void* context, bool isProblem, std::string_view line);
void setLogSink(LogSink sink, void* context);

/// strerror text with the number: "Connection refused (111)".
std::string errnoText(int error);

}  // namespace tutti
