// Writing to places that a user names: errors in the place of signals, and bounded waits.
#include "base/bounded_write.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/clock.h"

namespace tutti {
namespace {

constexpr milliseconds kLong{60'000};

struct Pipe {
  Pipe() {
    int ends[2]{-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    out = Fd(ends[0]);
    in = Fd(ends[1]);
  }
  Fd out;
  Fd in;
};

/// The smallest number of bytes a file may have, for its own lifetime.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit tight{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  }
  ~FileLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

bool waits(int signal) {
  sigset_t set;
  ::sigpending(&set);
  return ::sigismember(&set, signal) == 1;
}

bool blocked(int signal) {
  sigset_t set;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &set);
  return ::sigismember(&set, signal) == 1;
}

TEST(BoundedWrite, ToAPipeThatNobodyReadsIsAnErrorAndNoSignal) {
  Pipe pipe;
  pipe.out.reset();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(writeBounded(pipe.in.get(), "x", kLong), EPIPE);
  EXPECT_FALSE(waits(SIGPIPE));
  EXPECT_FALSE(blocked(SIGPIPE));
}

TEST(BoundedWrite, BeyondTheLimitOfAFileIsAnErrorAndNoSignal) {
  const std::string path = testing::TempDir() + "tutti-limit-" + std::to_string(::getpid());
  const Fd file = openForWriting(path);
  ASSERT_TRUE(file.valid());
  const FileLimit limit(100);
  EXPECT_EQ(writeBounded(file.get(), std::string(150, 'x'), kLong), EFBIG);
  struct stat found {};
  EXPECT_EQ(::fstat(file.get(), &found), 0);
  EXPECT_EQ(found.st_size, 100) << "what has room is written";
  {
    const WriteSignals guard;
    EXPECT_NE(::ftruncate(file.get(), 1000), 0);
    EXPECT_EQ(errno, EFBIG);
  }
  EXPECT_FALSE(waits(SIGXFSZ));
  EXPECT_FALSE(blocked(SIGXFSZ));
  ::unlink(path.c_str());
}

TEST(BoundedWrite, LeavesTheApplicationsOwnSignalsAlone) {
  sigset_t pipeSignal;
  sigset_t before;
  ::sigemptyset(&pipeSignal);
  ::sigaddset(&pipeSignal, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipeSignal, &before);
  ::pthread_kill(::pthread_self(), SIGPIPE);
  {
    Pipe pipe;
    pipe.out.reset();
    EXPECT_EQ(writeBounded(pipe.in.get(), "x", kLong), EPIPE);
  }
  EXPECT_TRUE(blocked(SIGPIPE));
  EXPECT_TRUE(waits(SIGPIPE));
  constexpr timespec kNoTime{};
  EXPECT_EQ(::sigtimedwait(&pipeSignal, nullptr, &kNoTime), SIGPIPE);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(BoundedWrite, WaitsForRoomNoLongerThanAllowed) {
  Pipe pipe;
  EXPECT_EQ(writeBounded(pipe.in.get(), std::string(1 << 20, 'x'), milliseconds(20)), ETIMEDOUT);
  EXPECT_EQ(writeBounded(pipe.in.get(), "x", milliseconds(0)), ETIMEDOUT);
}

TEST(BoundedWrite, GoesOnWhenThereIsRoomAgain) {
  Pipe pipe;
  const std::string text(1 << 20, 'x');
  std::size_t got = 0;
  std::thread reader([&] {
    std::string into(1 << 16, '\0');
    const Deadline deadline = Deadline::in(kLong);
    while (got < text.size() && !deadline.expired()) {
      const ssize_t some = ::read(pipe.out.get(), into.data(), into.size());
      if (some > 0) got += static_cast<std::size_t>(some);
      if (some < 0) std::this_thread::yield();
    }
  });
  EXPECT_EQ(writeBounded(pipe.in.get(), text, kLong), 0);
  reader.join();
  EXPECT_EQ(got, text.size());
}

TEST(BoundedWrite, OpensAFifoOnlyWhereSomebodyReadsIt) {
  const std::string path = testing::TempDir() + "tutti-fifo-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(openForWriting(path).valid());
  EXPECT_EQ(errno, ENXIO);
  EXPECT_NE(whyNotWritten(ENXIO).find("a FIFO that nobody reads"), std::string::npos);
  const Fd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(openForWriting(path).valid());
  ::unlink(path.c_str());
}

TEST(BoundedWrite, SaysWhatToDo) {
  EXPECT_FALSE(openForWriting("/").valid());
  EXPECT_EQ(whyNotWritten(errno), "Is a directory (21); name a file");
  EXPECT_FALSE(openForWriting("/nowhere/a").valid());
  EXPECT_EQ(whyNotWritten(errno), "No such file or directory (2); check the path: its folder must exist");
  const Fd full = openForWriting("/dev/full");
  if (!full.valid()) GTEST_SKIP() << "there is no /dev/full";
  EXPECT_EQ(whyNotWritten(writeBounded(full.get(), "x", kLong)),
            "No space left on device (28); make room, or name another file");
}

}  // namespace
}  // namespace tutti
