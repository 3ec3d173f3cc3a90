// Processes that a test forks, and what they hand over.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <type_traits>

#include "base/clock.h"

namespace tutti::test {

#ifdef __SANITIZE_THREAD__
inline constexpr bool kCanForkWithThreads = false;
#else
inline constexpr bool kCanForkWithThreads = true;
#endif

/// Values of one type from one process to another that is forked after this was made.
template <class T>
class Letters {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  Letters() { EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
  Letters(const Letters&) = delete;
  ~Letters() {
    for (const int end : ends_) ::close(end);
  }
  void send(const T& value) { EXPECT_EQ(::write(ends_[1], &value, sizeof value), static_cast<ssize_t>(sizeof value)); }
  /// Waits for one; the test fails where none comes.
  T receive() {
    T value{};
    pollfd waits{ends_[0], POLLIN, 0};
    const bool came = ::poll(&waits, 1, 30'000) == 1;
    EXPECT_TRUE(came && ::read(ends_[0], &value, sizeof value) == static_cast<ssize_t>(sizeof value));
    return value;
  }

 private:
  std::array<int, 2> ends_{};
};

/// A process of its own that does `life`, and every process that it forks: gone when this is.
class ForkedProcess {
 public:
  explicit ForkedProcess(const std::function<void()>& life) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1L);  // those that outlive their parent are waited for here
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::setpgid(0, 0);
    ::alarm(120);
    life();
    ::_exit(0);
  }
  ForkedProcess(const ForkedProcess&) = delete;
  ~ForkedProcess() {
    ::setpgid(pid_, pid_);  // where it has not come to that itself
    do {
      ::kill(-pid_, SIGKILL);
    } while (::waitpid(-pid_, nullptr, 0) > 0 || errno == EINTR);
    ::prctl(PR_SET_CHILD_SUBREAPER, 0L);
  }
  pid_t pid() const { return pid_; }
  /// Waits until the first process of it has ended; its exit status.
  int await() const {
    int status = -1;
    const Deadline limit = Deadline::in(std::chrono::seconds(60));
    while (::waitpid(pid_, &status, WNOHANG) == 0 && !limit.expired()) ::usleep(1000);
    return status;
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace tutti::test
