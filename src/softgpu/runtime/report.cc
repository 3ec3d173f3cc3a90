#include "softgpu/runtime/report.h"

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "softgpu/say.h"

namespace tutti::softgpu {
namespace {

bool firstTime(const char* subject) {
  static std::mutex mutex;
  // Never destroyed: exit handlers of the application may still report.
  static auto& seen = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return seen.insert(subject).second;
}

}  // namespace

void reportOnce(const char* subject, const char* format, ...) {
  if (!firstTime(subject)) return;
  char text[512];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  say("%s", text);
}

}  // namespace tutti::softgpu
