#include "comm/ending/stall_service.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/socket/local_service.h"

namespace tutti::comm {
namespace {

std::vector<std::string> nothingElse() {
  return {};
}

constexpr int kStrangers = 100;

Fd knockAt(const LocalAddress& at) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0) return {};
  return socket;
}

/// Whether the other side has closed it; it has nothing to say of a process without communicators.
bool closed(const Fd& socket) {
  char byte = 0;
  return ::recv(socket.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

/// Connections of another user, held until the end. Uses system calls only: it runs after a fork.
[[noreturn]] void knockAsAnother(const LocalAddress& at, int ready) {
  constexpr uid_t kNobody = 65534;
  char said = ::setresuid(kNobody, kNobody, kNobody) == 0 ? 'y' : 'n';
  for (int i = 0; i < kStrangers; ++i) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    (void)::connect(fd, reinterpret_cast<const sockaddr*>(&at.address), at.size);
  }
  if (::write(ready, &said, 1) != 1) ::_exit(1);
  ::pause();
  ::_exit(0);
}

TEST(StallService, AnotherUserDoesNotKeepOutWhoMayAsk) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  StallService service;
  service.open();
  const LocalAddress at = localAddress(kStallsTopic, ::getpid());
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t other = ::fork();
  if (other == 0) knockAsAnother(at, ready[1]);
  ::close(ready[1]);
  char said = 0;
  ASSERT_EQ(::read(ready[0], &said, 1), 1);
  EXPECT_EQ(said, 'y');
  const Fd own = knockAt(at);
  EXPECT_TRUE(own.valid()) << "no room for another connection";
  for (int i = 0; i < 2; ++i) service.serve({}, SteadyClock::now(), nothingElse);
  EXPECT_TRUE(closed(own)) << "not served in two looks";
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  ::close(ready[0]);
}

TEST(StallService, ServesOneAfterTheOther) {
  StallService service;
  service.open();
  const LocalAddress at = localAddress(kStallsTopic, ::getpid());
  const Fd first = knockAt(at);
  const Fd second = knockAt(at);
  ASSERT_TRUE(first.valid() && second.valid());
  for (int i = 0; i < 4; ++i) service.serve({}, SteadyClock::now(), nothingElse);
  EXPECT_TRUE(closed(first));
  EXPECT_TRUE(closed(second));
}

}  // namespace
}  // namespace tutti::comm
