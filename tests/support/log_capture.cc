#include "support/log_capture.h"

#include <algorithm>
#include <mutex>

#include "support/log_capture_listener.h"

namespace tutti::test {

LogCapture& LogCapture::instance() {
  static LogCapture capture;
  return capture;
}

void LogCapture::begin() {
  const std::lock_guard lock(mutex_);
  lines_.clear();
  problems_.clear();
  expected_.clear();
  allowed_.clear();
}

void LogCapture::add(bool isProblem, std::string_view line) {
  const std::lock_guard lock(mutex_);
  lines_.emplace_back(line);
  if (isProblem) problems_.emplace_back(line);
}

void LogCapture::expect(std::string_view part) {
  const std::lock_guard lock(mutex_);
  expected_.emplace_back(part);
}

void LogCapture::allow(std::string_view part) {
  const std::lock_guard lock(mutex_);
  allowed_.emplace_back(part);
}

std::vector<std::string> LogCapture::lines() {
  const std::lock_guard lock(mutex_);
  return lines_;
}

std::string LogCapture::verdict() {
  const std::lock_guard lock(mutex_);
  std::string complaint;
  std::vector<std::string> open = problems_;
  const auto contains = [](const std::string& part) {
    return [&part](const std::string& line) { return line.find(part) != std::string::npos; };
  };
  for (const std::string& part : expected_) {
    const auto it = std::find_if(open.begin(), open.end(), contains(part));
    if (it == open.end())
      complaint += "expected WARN or ERROR line did not come: " + part + "\n";
    else
      open.erase(it);
  }
  for (const std::string& part : allowed_) std::erase_if(open, contains(part));
  for (const std::string& line : open) complaint += "unexpected log line (see expectLog):" + line;
  return complaint;
}

void expectLog(std::string_view part) {
  LogCapture::instance().expect(part);
}
void allowLog(std::string_view part) {
  LogCapture::instance().allow(part);
}
std::vector<std::string> capturedLog() {
  return LogCapture::instance().lines();
}

std::string capturedText() {
  std::string text;
  for (const std::string& line : capturedLog()) text += line;
  return text;
}

}  // namespace tutti::test
