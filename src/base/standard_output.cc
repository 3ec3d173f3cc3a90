#include "base/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "base/bounded_write.h"

namespace tutti {

namespace {

/// For whoever reads a standard output that the application made non-blocking.
constexpr std::chrono::milliseconds kPatience{1000};

/// Asked when the library is loaded. Where standard output is closed, descriptors that some thread is just making have
/// its number for a moment, before Fd moves them: a line would end up in shared memory or in a socket.
const bool hasStdout = ::fcntl(STDOUT_FILENO, F_GETFD) >= 0;

}  // namespace

void writeToStdout(std::string_view text) {
  if (!hasStdout) return;
  // What the application has printed so far comes first; then the text in one piece, whatever the stream's buffering.
  {
    const WriteSignals guard;
    std::fflush(stdout);
  }
  static_cast<void>(writeBounded(::fileno(stdout), text, kPatience));  // if that fails, nobody is left to tell
}

}  // namespace tutti
