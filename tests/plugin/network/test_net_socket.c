#include "plugin/network/test_net_socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static socklen_t addressOf(const SocketHandle* handle, struct sockaddr_un* address) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX; /* sun_path[0] stays 0: the name space without files */
  const int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "test-net-%016llx",
                              (unsigned long long)handle->name);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int newSocket(void) {
  return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}
/* -1, and errno as it was. */
static int giveUp(int fd) {
  const int why = errno;
  if (fd >= 0) close(fd);
  errno = why;
  return -1;
}

int socketListen(SocketHandle* handle) {
  struct sockaddr_un address;
  if (getrandom(&handle->name, sizeof handle->name, 0) != (ssize_t)sizeof handle->name) return -1;
  const socklen_t length = addressOf(handle, &address);
  const int fd = newSocket();
  if (fd < 0 || bind(fd, (struct sockaddr*)&address, length) != 0 || listen(fd, 1) != 0) return giveUp(fd);
  return fd;
}

int socketConnect(const SocketHandle* handle) {
  struct sockaddr_un address;
  const socklen_t length = addressOf(handle, &address);
  const int fd = newSocket();
  return fd < 0 || connect(fd, (struct sockaddr*)&address, length) != 0 ? giveUp(fd) : fd;
}

int socketAccept(int listener) {
  const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return -1;
  struct ucred peer = {0};
  socklen_t length = sizeof peer;
  getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
  if (peer.pid != 0 && peer.uid == geteuid()) return fd;
  errno = EAGAIN;
  return giveUp(fd);
}

size_t socketMove(int fd, int out, struct iovec* parts, size_t n, const char** error) {
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = n};
  const ssize_t moved = out ? sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) : recvmsg(fd, &message, MSG_DONTWAIT);
  if (moved == 0) *error = "the peer closed the connection";
  if (moved < 0 && errno != EAGAIN && errno != EINTR) *error = strerror(errno);
  if (moved <= 0) return 0;
  size_t left = (size_t)moved;
  for (; n > 0 && left > 0; ++parts, --n) {
    const size_t part = left < parts->iov_len ? left : parts->iov_len;
    parts->iov_base = (char*)parts->iov_base + part;
    parts->iov_len -= part;
    left -= part;
  }
  return (size_t)moved;
}
