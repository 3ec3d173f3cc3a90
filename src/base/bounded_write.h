// Writing to places that a user names: it neither waits for ever nor ends the process.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace tutti {

/// While it lives, what this thread writes or makes longer fails with an error alone, where the system would send a
/// signal that ends the process as well: SIGPIPE (nobody reads any more) and SIGXFSZ (a file longer than RLIMIT_FSIZE).
/// What the application does about these signals stays as it is, and so does one that waited for this thread before.
/// errno stays. One at a time on a thread.
class WriteSignals {
 public:
  WriteSignals() {
    ::sigemptyset(&ours_);
    ::sigaddset(&ours_, SIGPIPE);
    ::sigaddset(&ours_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &ours_, &before_);
    sigset_t waiting;
    ::sigpending(&waiting);
    for (const int signal : {SIGPIPE, SIGXFSZ}) {
      if (::sigismember(&waiting, signal) == 1) ::sigdelset(&ours_, signal);
    }
  }
  ~WriteSignals() {
    const int error = errno;
    constexpr std::timespec kNoTime{};
    // Both signals go to the thread that writes, so what waits here now was caused by it.
    while (::sigtimedwait(&ours_, nullptr, &kNoTime) > 0 || errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  WriteSignals(const WriteSignals&) = delete;
  WriteSignals& operator=(const WriteSignals&) = delete;

 private:
  sigset_t ours_;
  sigset_t before_;
};

/// Opens `path` to write, made or emptied; `append`: every write goes to its end, whoever else writes there. What would
/// make the opener wait (a FIFO that nobody reads) is an error. Invalid on failure, and errno says why. The descriptor
/// does not block: use writeBounded(). Any thread.
Fd openForWriting(const std::string& path, bool append = false);

/// Writes all of `text`; waits at most `most` for room where the descriptor does not block. 0, or the error's number:
/// ETIMEDOUT when there was no room for so long. Part of the text may have been written. No signal. Any thread.
int writeBounded(int fd, std::string_view text, std::chrono::milliseconds most);

/// What the number of openForWriting() or writeBounded() says of a file, and what to do: "No space left on device (28);
/// make room, or name another file".
std::string whyNotWritten(int error);

}  // namespace tutti
