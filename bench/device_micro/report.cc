#include <cstdarg>
#include <cstdio>
#include <utility>

#include "bench/device_micro/bench.h"

namespace micro {

void Report::line(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::printf("\n");
  std::fflush(stdout);
}

void Report::result(nlohmann::json values) {
  values["item"] = item_;
  results_.push_back(std::move(values));
}

void Report::failure(const std::string& what) {
  failures_.push_back(item_ + ": " + what);
  line("FAILED %s: %s", item_.c_str(), what.c_str());
}

void Report::skipped(const std::string& what) {
  skips_.push_back(item_ + ": " + what);
}

bool Bench::outOfTime(const std::string& what) {
  if (elapsed() < options.seconds) return false;
  report.skipped(what);
  return true;
}

}  // namespace micro
