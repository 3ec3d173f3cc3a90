// What the software GPU tells its user, on standard error.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdio>

#include "base/bounded_write.h"

namespace tutti::softgpu {

/// Asked when the library is loaded. Where standard error is closed, descriptors that some thread is just making have
/// its number for a moment, before Fd moves them: a line would end up in a device's memory.
inline const bool hasStderr = ::fcntl(STDERR_FILENO, F_GETFD) >= 0;

/// Writes one line, at most 1023 bytes, that begins with "softgpu: ", in one piece, so that lines of several processes
/// do not mix. `format` as in printf, without the end of the line. Where nobody reads standard error, or a file there
/// has reached its limit, the line is lost and no signal comes of it. errno stays. Any thread.
[[gnu::format(printf, 1, 2)]] inline void say(const char* format, ...) {
  if (!hasStderr) return;
  const int error = errno;
  char line[1024] = "softgpu: ";
  constexpr std::size_t kName = 9;
  constexpr std::size_t kRoom = sizeof(line) - kName;
  va_list arguments;
  va_start(arguments, format);
  const int wanted = std::vsnprintf(line + kName, kRoom, format, arguments);
  va_end(arguments);
  std::size_t length = kName + std::min(static_cast<std::size_t>(std::max(wanted, 0)), kRoom - 1);
  if (length == sizeof(line) - 1) --length;
  line[length++] = '\n';
  const WriteSignals guard;
  static_cast<void>(!::write(STDERR_FILENO, line, length));  // if that fails, nobody is left to tell
  errno = error;
}

}  // namespace tutti::softgpu
