#include "stalls.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/socket/stall_socket.h"

namespace tutti {

namespace {

/// A process asks the other ranks, who take seconds to answer.
constexpr std::chrono::seconds kPatience{15};

int explain(int pid, int error) {
  if (::kill(pid, 0) != 0 && errno == ESRCH) {
    std::fprintf(stderr, "tutti-info: there is no process %d\n", pid);
  } else if (error == ECONNREFUSED) {
    std::fprintf(stderr,
                 "tutti-info: process %d has no communicator of tutti at the moment (or lives in another network "
                 "namespace: run this in its container, with the number that the process has there)\n",
                 pid);
  } else {
    std::fprintf(stderr, "tutti-info: process %d cannot be asked: %s\n", pid, errnoText(error).c_str());
  }
  return 1;
}

/// Whether who answers is who was asked, and not a stranger that took its name.
bool isOwn(int socket) {
  ucred who{};
  socklen_t size = sizeof(who);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return false;
  return who.uid == ::geteuid() || ::geteuid() == 0;
}

int printAll(int socket, int pid) {
  const Deadline deadline = Deadline::in(kPatience);
  std::array<char, 4096> piece{};
  bool any = false;
  while (!deadline.expired()) {
    pollfd ready{socket, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(deadline.remaining().count())) <= 0) continue;
    const ssize_t got = ::recv(socket, piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      if (any) return 0;
      std::fprintf(stderr,
                   "tutti-info: process %d said nothing: its last communicator has ended, or it runs as another "
                   "user\n",
                   pid);
      return 1;
    }
    std::fwrite(piece.data(), 1, static_cast<std::size_t>(got), stdout);
    any = true;
  }
  std::fprintf(stderr, "tutti-info: process %d did not answer within %d s: is it stopped?\n", pid,
               static_cast<int>(kPatience.count()));
  return 1;
}

}  // namespace

int askForStalls(int pid) {
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return explain(pid, errno);
  const StallAddress at = stallAddress(pid);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0) return explain(pid, errno);
  if (!isOwn(socket.get())) return explain(pid, EPERM);
  return printAll(socket.get(), pid);
}

}  // namespace tutti
