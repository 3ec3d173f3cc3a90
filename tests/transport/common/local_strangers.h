// A process that besieges a local socket.
#pragma once

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "transport/common/local_socket.h"

namespace tutti::test {

/// While it lives, strangers come to `name` by the thousand: some stay, some talk nonsense, all go in the end.
class LocalStrangers {
 public:
  explicit LocalStrangers(const transport::LocalName& name) : process_(::fork()) {
    if (process_ == 0) besiege(name);
  }
  LocalStrangers(const LocalStrangers&) = delete;
  LocalStrangers& operator=(const LocalStrangers&) = delete;
  ~LocalStrangers() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

 private:
  /// Uses system calls only: it runs after a fork.
  [[noreturn]] static void besiege(const transport::LocalName& name) {
    std::array<int, 256> lines;
    lines.fill(-1);
    for (std::size_t i = 0;; ++i) {
      int& line = lines[i % lines.size()];
      if (line >= 0) ::close(line);
      line = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
      (void)::connect(line, name.generic(), name.length);
      if (i % 3 == 0) (void)::send(line, "nonsense", 8, MSG_NOSIGNAL);
      if (i % 32 == 0) ::usleep(1000);
    }
  }

  pid_t process_;
};

}  // namespace tutti::test
