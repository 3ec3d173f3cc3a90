#include "base/bounded_write.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"

namespace tutti {

namespace {

const char* remedyFor(int error) {
  switch (error) {
    case ENXIO:
      return ": it is a FIFO that nobody reads, or a socket; begin to read it first, or name a regular file";
    case EISDIR:
      return "; name a file";
    case ENOENT:
    case ENOTDIR:
      return "; check the path: its folder must exist";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; name a file that this user may write";
    case EMFILE:
      return "; raise the limit of open files (ulimit -n)";
    case ENOSPC:
    case EDQUOT:
      return "; make room, or name another file";
    case EFBIG:
      return "; raise the limit of a file's size (ulimit -f), or name another file";
    case EPIPE:
      return "; whoever read it has gone";
    case ETIMEDOUT:
      return "; whoever reads it takes nothing";
    default:
      return "";
  }
}

}  // namespace

Fd openForWriting(const std::string& path, bool append) {
  constexpr int kAlways = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  constexpr mode_t kMode = 0666;  // less what the process's umask takes away
  Fd file;
  do {
    file = Fd(::open(path.c_str(), kAlways | (append ? O_APPEND : 0), kMode));
  } while (!file.valid() && errno == EINTR);
  return file;
}

int writeBounded(int fd, std::string_view text, std::chrono::milliseconds most) {
  const WriteSignals guard;
  const Deadline deadline = Deadline::in(most);
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
      if (written == 0) return EIO;
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return errno;
    if (deadline.expired()) return ETIMEDOUT;
    pollfd room{fd, POLLOUT, 0};
    ::poll(&room, 1, static_cast<int>(deadline.remaining().count()));
  }
  return 0;
}

std::string whyNotWritten(int error) {
  return errnoText(error) + remedyFor(error);
}

}  // namespace tutti
