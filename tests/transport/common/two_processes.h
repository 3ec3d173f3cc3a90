// A connection between two processes: the other one is this program once more.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "transport/common/ends.h"

extern "C" char** environ;

namespace tutti::test {

inline constexpr const char* kLineVariable = "TUTTI_TEST_LINE";

/// One end of a socket between two processes; whole messages, bounded waits.
class Line {
 public:
  explicit Line(int fd) : fd_(fd) {}
  Line(Line&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Line() {
    if (fd_ >= 0) ::close(fd_);
  }
  template <class T>
  void send(const T& message) const {
    static_assert(std::is_trivially_copyable_v<T>);
    EXPECT_EQ(::send(fd_, &message, sizeof(message), MSG_NOSIGNAL), static_cast<ssize_t>(sizeof(message)));
  }
  template <class T>
  T recv() const {
    constexpr int kPatienceMs = 30'000;
    T message{};
    pollfd poll{fd_, POLLIN, 0};
    EXPECT_EQ(::poll(&poll, 1, kPatienceMs), 1) << "the other process does not answer";
    EXPECT_EQ(::recv(fd_, &message, sizeof(message), MSG_DONTWAIT), static_cast<ssize_t>(sizeof(message)));
    return message;
  }

 private:
  int fd_;
};

inline Line lineToParent() {
  const char* fd = std::getenv(kLineVariable);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_NE(fd, nullptr);
  return Line(fd == nullptr ? -1 : std::atoi(fd));
}

/// Starts this program again with the named (disabled) test, `fd` and further variables in its environment.
inline pid_t startChild(const std::string& test, int fd, const std::vector<std::string>& more) {
  std::vector<std::string> variables{std::string(kLineVariable) + "=" + std::to_string(fd)};
  variables.insert(variables.end(), more.begin(), more.end());
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  for (char** old = environ; *old != nullptr; ++old) environment.push_back(*old);
  environment.push_back(nullptr);
  std::string program = "/proc/self/exe";
  std::string disabled = "--gtest_also_run_disabled_tests";
  std::string filter = "--gtest_filter=" + test;
  char* arguments[] = {program.data(), disabled.data(), filter.data(), nullptr};
  pid_t child = -1;
  EXPECT_EQ(::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environment.data()), 0);
  return child;
}

/// The program in another process with a line to it.
class Child {
 public:
  /// `test`: a disabled one, which uses lineToParent().
  explicit Child(const std::string& test, const std::vector<std::string>& environment = {}) : Child(pairOfLines()) {
    pid_ = startChild(test, theirs_, environment);
    ::close(theirs_);
  }
  const Line& line() const { return line_; }
  pid_t pid() const { return pid_; }
  /// Stops it with SIGSTOP, and returns when none of its threads runs any more.
  void stop() const {
    EXPECT_EQ(::kill(pid_, SIGSTOP), 0);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
    EXPECT_TRUE(WIFSTOPPED(status)) << "it ended: " << status;
  }
  int wait() const {
    int status = -1;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    return status;
  }

 private:
  explicit Child(std::pair<int, int> ends) : line_(ends.first), theirs_(ends.second) {}
  static std::pair<int, int> pairOfLines() {
    int ends[2]{-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    EXPECT_EQ(::fcntl(ends[0], F_SETFD, FD_CLOEXEC), 0);
    return {ends[0], ends[1]};
  }
  Line line_;
  int theirs_;
  pid_t pid_ = -1;
};

inline constexpr std::uint64_t kData = 0x0123456789abcdefULL;

/// One side of a connection, from the handle to the first content of a slot; the other process does the same.
inline void expectProvesItself(bool sends, const gpu::Device& device, transport::Endpoint& endpoint, const Line& line) {
  line.send(endpoint.handle());
  ASSERT_TRUE(endpoint.connect(line.recv<transport::ConnectHandle>()).ok());
  ASSERT_TRUE(becomesReady(endpoint));
  ASSERT_TRUE(endpoint.probeWrite().ok());
  line.send('w');
  line.recv<char>();
  EXPECT_TRUE(endpoint.probeCheck().value());
  line.send('c');
  line.recv<char>();
  expectUntouched(device, transport::fifosOf(endpoint.view()));
  line.send('u');
  line.recv<char>();
  const auto slot = reinterpret_cast<CUdeviceptr>(transport::fifosOf(endpoint.view()).slots[2]);
  if (sends) {
    EXPECT_TRUE(gpu::copyToDevice(device, slot, std::as_bytes(std::span(&kData, 1))).ok());
  }
  line.send('d');
  line.recv<char>();
  EXPECT_EQ(wordAt(device, transport::fifosOf(endpoint.view()).slots[2]), kData);
  line.send('e');
  line.recv<char>();
}

}  // namespace tutti::test
