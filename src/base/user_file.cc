#include "base/user_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace tutti {

namespace {

std::string_view kindOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return {};
    case S_IFDIR:
      return "a directory";
    case S_IFIFO:
      return "a FIFO";
    case S_IFCHR:
    case S_IFBLK:
      return "a device";
    case S_IFSOCK:
      return "a socket";
    default:
      return "no file with content";
  }
}

UserFile notAFile(std::string_view kind) {
  return {FileTrouble::NotAFile, {}, "it is " + std::string(kind) + "; name a regular file"};
}

UserFile tooLarge(std::size_t most) {
  return {
      FileTrouble::TooLarge, {}, "it has more than " + std::to_string(most) + " bytes; is it the file that is meant?"};
}

const char* remedyForReading(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return "; give this user the right to read it";
    case EMFILE:
      return "; raise the limit of open files (ulimit -n)";
    case ENOENT:
    case ENOTDIR:
      return "; check the path";
    default:
      return "";
  }
}

/// `action`: "opened" or "read".
UserFile refused(const char* action, int error) {
  char buffer[128];
  // The GNU strerror_r: returns the text, which need not be in the buffer.
  const std::string words = ::strerror_r(error, buffer, sizeof(buffer));
  const bool missing = error == ENOENT || error == ENOTDIR;
  return {missing ? FileTrouble::Missing : FileTrouble::Unreadable,
          {},
          std::string("it cannot be ") + action + ": " + words + " (" + std::to_string(error) + ")" +
              remedyForReading(error)};
}

}  // namespace

std::string_view kindOfNoFile(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 ? kindOf(found.st_mode) : std::string_view();
}

UserFile readUserFile(const std::string& path, std::size_t most) {
  // Opening is an act of its own for some devices, so look first; the path may name something else a moment later.
  if (const std::string_view kind = kindOfNoFile(path); !kind.empty()) return notAFile(kind);
  Fd file;
  do {
    file = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  } while (!file.valid() && errno == EINTR);
  struct stat found {};
  if (!file.valid() || ::fstat(file.get(), &found) != 0) return refused("opened", errno);
  if (const std::string_view kind = kindOf(found.st_mode); !kind.empty()) return notAFile(kind);
  if (static_cast<std::uintmax_t>(found.st_size) > most) return tooLarge(most);
  UserFile read;
  while (read.text.size() <= most) {
    constexpr std::size_t kBlock = 64 << 10;
    const std::size_t had = read.text.size();
    read.text.resize(had + kBlock);
    const ssize_t got = ::read(file.get(), read.text.data() + had, kBlock);
    const int error = errno;
    read.text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return read;
    if (got < 0 && error != EINTR) return refused("read", error);
  }
  return tooLarge(most);  // it has grown, or is one of those of /proc, which have no size
}

}  // namespace tutti
