#include "base/log_line.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cctype>

namespace tutti {

namespace {

constexpr std::size_t kMaxLineBytes = 1024;

bool isNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '~';
}

/// Position of the parenthesis that opens the parameters: the first one outside template arguments.
std::size_t parametersOf(std::string_view signature) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  int depth = 0;
  for (std::size_t i = 0; i < signature.size(); ++i) {
    const char c = signature[i];
    if (c == '<') ++depth;
    if (c == '>') --depth;
    if (c != '(' || depth != 0) continue;
    if (!signature.substr(i).starts_with(kAnonymous)) return i;
    i += kAnonymous.size() - 1;
  }
  return signature.size();
}

std::string located(const LineContext& c) {
  const std::string_view function = functionName(c.where.function);
  if (function.empty()) return fmt::format("{}:{}", sourcePath(c.where.file), c.where.line);
  return fmt::format("{}:{} ({})", sourcePath(c.where.file), c.where.line, function);
}

std::string prefixed(const LineContext& c, std::string_view text) {
  const std::string who = fmt::format("{}{}:{}:{}", c.stamp, c.host, ::getpid(), ::gettid());
  switch (c.kind) {
    case LineClass::Version:
      return fmt::format("{}{}", c.stamp, text);
    case LineClass::Warn:
      return fmt::format("\n{} [{}] {} NCCL WARN {}", who, c.device, located(c), text);
    case LineClass::Error:
      return fmt::format("\n{} [{}] {} NCCL ERROR {}", who, c.device, located(c), text);
    case LineClass::Info:
      return fmt::format("{} [{}] NCCL INFO {}", who, c.device, text);
    case LineClass::Abort:
      return fmt::format("{} [{}] NCCL ABORT {}", who, c.device, text);
    case LineClass::Trace:
      return fmt::format("{} [{}] {:f} {}:{} NCCL TRACE {}", who, c.device, c.elapsedMs, functionName(c.where.function),
                         c.where.line, text);
    case LineClass::Call:
      return fmt::format("{} NCCL CALL {}", who, text);
  }
  return std::string(text);
}

/// Replaces %1f…%9f, which strftime does not know, by digits of the second's fraction.
std::string expandFractions(std::string_view format, long nanoseconds) {
  const std::string digits = fmt::format("{:09}", nanoseconds);
  std::string expanded;
  for (std::size_t i = 0; i < format.size(); ++i) {
    const bool percent = format[i] == '%' && i + 1 < format.size();
    if (percent && i + 2 < format.size() && format[i + 1] >= '1' && format[i + 1] <= '9' && format[i + 2] == 'f') {
      expanded += digits.substr(0, static_cast<std::size_t>(format[i + 1] - '0'));
      i += 2;
    } else if (percent) {
      expanded += format.substr(i, 2);
      ++i;
    } else {
      expanded += format[i];
    }
  }
  return expanded;
}

}  // namespace

LogLevel levelOf(LineClass kind) {
  switch (kind) {
    case LineClass::Version:
      return LogLevel::Version;
    case LineClass::Warn:
    case LineClass::Error:
      return LogLevel::Warn;
    case LineClass::Info:
      return LogLevel::Info;
    case LineClass::Abort:
      return LogLevel::Abort;
    case LineClass::Trace:
    case LineClass::Call:
      return LogLevel::Trace;
  }
  return LogLevel::Info;
}

std::string layOutLine(const LineContext& context, std::string_view text) {
  std::string line = prefixed(context, text);
  while (line.ends_with('\n')) line.pop_back();
  if (line.size() > kMaxLineBytes - 1) line.resize(kMaxLineBytes - 1);
  line += '\n';
  return line;
}

std::string formatStamp(std::string_view format, const std::timespec& time) {
  if (format.empty()) return {};
  std::tm local{};
  ::localtime_r(&time.tv_sec, &local);
  std::array<char, 512> buffer{};
  const std::string expanded = expandFractions(format, time.tv_nsec);
  return {buffer.data(), std::strftime(buffer.data(), buffer.size(), expanded.c_str(), &local)};
}

std::string_view sourcePath(std::string_view file) {
  if (const std::size_t at = file.rfind("/src/"); at != std::string_view::npos) return file.substr(at + 5);
  if (file.starts_with("src/")) return file.substr(4);
  while (file.starts_with("../")) file.remove_prefix(3);
  return file;
}

std::string_view functionName(std::string_view signature) {
  std::size_t end = parametersOf(signature);
  // Template arguments of the function itself ("f<int>(…)") are not part of its name.
  if (end > 0 && signature[end - 1] == '>') {
    int depth = 0;
    do {
      --end;
      if (signature[end] == '>') ++depth;
      if (signature[end] == '<') --depth;
    } while (end > 0 && depth > 0);
  }
  std::size_t begin = end;
  while (begin > 0 && isNameChar(signature[begin - 1])) --begin;
  return begin == end ? signature : signature.substr(begin, end - begin);
}

}  // namespace tutti
