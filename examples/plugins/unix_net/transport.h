// Messages between two processes of a host over a UNIX socket, without waiting: what plugin.cc is made of.
//
// A message is a header and its bytes. Sends leave, and receives are filled, in the order in which they were posted. No
// thread works behind the caller's back: whoever posts or tests moves as much as the socket takes.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <random>
#include <string>

#include "nccl_net.h"

namespace unix_net {

/// What the receiver's listen() tells the sender's connect(): the socket's name, in Linux's name space without files.
struct Handle {
  std::uint64_t name;
};

/// In front of every message: how many bytes it has.
using Header = std::uint64_t;

/// One posted send or receive. It belongs to its connection.
struct Request {
  struct Connection* connection;
  bool busy = false;
  Header header = 0;  // a receive: of the message that came
  char* data = nullptr;
  std::size_t room = 0;   // a receive: how much fits
  std::size_t moved = 0;  // of header and message together
  void* event = nullptr;  // a profiler's, while it is under way; null: none wants to hear of it
  bool done() const { return moved >= sizeof(Header) && moved == sizeof(Header) + header; }
};

struct Connection {
  int fd = -1;
  bool sends = false;
  Request requests[NCCL_NET_MAX_REQUESTS];
  std::deque<Request*> queue;  // under way, oldest first
  std::string error;           // why nothing will move any more

  Connection(int socket, bool sender) : fd(socket), sends(sender) {}
  ~Connection() { ::close(fd); }

  /// A free request at the end of the queue; null: all are under way.
  Request* post(void* data, std::size_t bytes) {
    Request* const end = requests + NCCL_NET_MAX_REQUESTS;
    Request* const request = std::find_if(requests, end, [](const Request& r) { return !r.busy; });
    if (request == end) return nullptr;
    *request = {.connection = this, .busy = true, .data = static_cast<char*>(data)};
    (sends ? request->header : request->room) = bytes;
    queue.push_back(request);
    progress();
    return request;
  }

  /// Moves what can be moved now.
  void progress() {
    while (!queue.empty() && error.empty()) {
      Request& request = *queue.front();
      const bool moved = move(request);
      if (request.done()) queue.pop_front();
      if (!moved) return;
    }
  }

 private:
  bool move(Request& r) {
    iovec parts[2];
    std::size_t count = 0;
    if (r.moved < sizeof(Header)) {
      parts[count++] = {reinterpret_cast<char*>(&r.header) + r.moved, sizeof(Header) - r.moved};
    }
    // A receiver must not take the next message's bytes for this one's before it knows how long this one is.
    const std::size_t before = std::max(r.moved, sizeof(Header)) - sizeof(Header);
    if ((sends || r.moved >= sizeof(Header)) && r.header > before) {
      parts[count++] = {r.data + before, r.header - before};
    }
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t bytes =
        sends ? ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) : ::recvmsg(fd, &message, MSG_DONTWAIT);
    if (bytes == 0) error = "the peer closed the connection";
    if (bytes < 0 && errno != EAGAIN && errno != EINTR) error = std::strerror(errno);
    if (bytes > 0) r.moved += static_cast<std::size_t>(bytes);
    if (!sends && r.moved >= sizeof(Header) && r.header > r.room) error = "a message is longer than its receive";
    return bytes > 0;
  }
};

struct Listener {
  int fd;
  ~Listener() { ::close(fd); }
};

inline socklen_t addressOf(const Handle& handle, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;  // sun_path[0] stays 0: the name space without files
  const int length = std::snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "unix-net-%016llx",
                                   static_cast<unsigned long long>(handle.name));
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
}

/// A socket of our kind; -1, with errno set: the system has none for us.
inline int newSocket() {
  return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}
/// Null, and errno as it was.
inline std::nullptr_t giveUp(int fd) {
  const int why = errno;
  if (fd >= 0) ::close(fd);
  errno = why;
  return nullptr;
}

/// Null: errno says why.
inline Listener* listen(Handle& handle) {
  std::random_device random;
  handle.name = std::uint64_t{random()} << 32 | random();
  sockaddr_un address;
  const socklen_t length = addressOf(handle, address);
  const int fd = newSocket();
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(fd, 1) != 0)
    return giveUp(fd);
  return new Listener{fd};
}

/// Null: errno is EAGAIN for "not yet", else the reason.
inline Connection* connect(const Handle& handle) {
  sockaddr_un address;
  const socklen_t length = addressOf(handle, address);
  const int fd = newSocket();
  if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) return giveUp(fd);
  return new Connection(fd, true);
}

/// The same. Anybody on the host may try names: only processes of the same user are let in.
inline Connection* accept(const Listener& listener) {
  const int fd = ::accept4(listener.fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return nullptr;
  ucred peer{};
  socklen_t length = sizeof(peer);
  ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
  if (peer.pid != 0 && peer.uid == ::geteuid()) return new Connection(fd, false);
  errno = EAGAIN;
  return giveUp(fd);
}

}  // namespace unix_net
