// Descriptors of ours are never those of the standard streams.
#include "base/fd.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/socket/socket.h"
#include "base/threads/waker.h"

namespace tutti {
namespace {

bool isOpen(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

/// A process whose standard streams are closed, for its own lifetime.
class ClosedStreams {
 public:
  ClosedStreams() {
    for (int fd = 0; fd < 3; ++fd) {
      kept_[fd] = ::fcntl(fd, F_DUPFD_CLOEXEC, 100);
      ::close(fd);
    }
  }
  ~ClosedStreams() {
    for (int fd = 0; fd < 3; ++fd) {
      ::dup2(kept_[fd], fd);
      ::close(kept_[fd]);
    }
  }

 private:
  int kept_[3]{-1, -1, -1};
};

TEST(Fd, IsAboveTheStandardStreamsWhereTheseAreClosed) {
  bool above = true;
  bool closed = true;
  int flags = 0;
  {
    const ClosedStreams streams;
    const Fd file(::open("/dev/null", O_RDONLY));
    const Waker waker = Waker::create();
    const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    for (const int fd : {file.get(), waker.fd(), socket.get()}) above = above && fd > 2;
    for (int fd = 0; fd < 3; ++fd) closed = closed && !isOpen(fd);
    flags = ::fcntl(file.get(), F_GETFD);
  }
  EXPECT_TRUE(above);
  EXPECT_TRUE(closed) << "what was moved is closed where it was";
  EXPECT_EQ(flags, FD_CLOEXEC);
}

TEST(Fd, ThatCannotBeMovedIsNoneAndErrnoSaysWhy) {
  Fd moved;
  int error = 0;
  bool left = true;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  {
    const ClosedStreams streams;
    const rlimit tight{3, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &tight);
    moved = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    error = errno;
    left = isOpen(0);
    ::setrlimit(RLIMIT_NOFILE, &before);
  }
  EXPECT_FALSE(moved.valid());
  EXPECT_EQ(error, EMFILE);
  EXPECT_FALSE(left);
}

}  // namespace
}  // namespace tutti
