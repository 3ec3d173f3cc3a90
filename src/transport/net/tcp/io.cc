#include "transport/net/tcp/io.h"

// As socket_watch.cc, with which it may be compiled as one: the two headers exclude each other.
#include <linux/tcp.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/fd.h"
#include "base/socket/errors.h"

namespace tutti::net::tcp {

namespace {

using Kind = IoOutcome::Kind;

IoOutcome failedWith(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK) return {.kind = Kind::WouldBlock};
  return {.kind = meansPeerGone(error) ? Kind::Closed : Kind::Failed, .bytes = 0, .error = error};
}

IoOutcome moved(ssize_t bytes) {
  return {.kind = Kind::Done, .bytes = static_cast<std::size_t>(bytes)};
}

void setOption(int fd, int level, int name, int value) {
  static_cast<void>(::setsockopt(fd, level, name, &value, sizeof(value)));
}

/// Whoever waits for bytes asks the peer's kernel whether it is there. (TCP_USER_TIMEOUT would end as well what a
/// living peer has no room for yet, which is no error.)
void watchSilence(int fd, milliseconds silence) {
  const int seconds = std::max(1, static_cast<int>(silence.count() / 1000));
  setOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, seconds / 2));
  setOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 6));
  setOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

/// Both ends on one host.
bool staysHere(int fd) {
  Address local = Address::any(AF_INET6);
  Address peer = local;
  socklen_t localLength = local.length();
  socklen_t peerLength = peer.length();
  if (::getsockname(fd, local.raw(), &localLength) != 0) return false;
  if (::getpeername(fd, peer.raw(), &peerLength) != 0) return false;
  local.setPort(peer.port());
  return local == peer;
}

/// Whether `peer` is an address of this host. Connecting a datagram socket looks up the way and sends nothing.
bool isHere(const Address& peer) {
  const Fd probe(::socket(peer.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return probe.valid() && ::connect(probe.get(), peer.raw(), peer.length()) == 0 && staysHere(probe.get());
}

}  // namespace

IoOutcome sendParts(int fd, std::span<iovec> parts) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  while (true) {
    const ssize_t bytes = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (bytes >= 0) return moved(bytes);
    if (errno != EINTR) return failedWith(errno);
  }
}

IoOutcome receiveParts(int fd, std::span<iovec> parts) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  while (true) {
    const ssize_t bytes = parts.size() == 1 ? ::recv(fd, parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT)
                                            : ::recvmsg(fd, &message, MSG_DONTWAIT);
    if (bytes > 0) return moved(bytes);
    if (bytes == 0) return {.kind = Kind::Closed};
    if (errno != EINTR) return failedWith(errno);
  }
}

IoOutcome standsBy(int fd) {
  std::byte next{};
  while (true) {
    const ssize_t bytes = ::recv(fd, &next, sizeof(next), MSG_PEEK | MSG_DONTWAIT);
    if (bytes > 0) return {.kind = Kind::WouldBlock};
    if (bytes == 0) return {.kind = Kind::Closed};
    if (errno != EINTR) return failedWith(errno);
  }
}

bool sizesSendBuffer(int fd, const SocketOptions& options) {
  return options.sendBuffer < 0 && staysHere(fd);
}

void sizeSendBuffer(int fd, std::size_t longest) {
  setOption(fd, SOL_SOCKET, SO_SNDBUF, static_cast<int>(std::clamp(longest, kLeastSendBuffer, kMostSendBuffer)));
}

void dropPacing(int fd, const Address& peer) {
  // Every Linux has it, and lets everybody choose it unless it is told otherwise.
  static constexpr std::string_view kUnpaced = "reno";
  if (isHere(peer)) static_cast<void>(::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kUnpaced.data(), kUnpaced.size()));
}

void tuneConnected(int fd, const SocketOptions& options) {
  if (sizesSendBuffer(fd, options)) sizeSendBuffer(fd, 0);
}

void tuneSocket(int fd, const SocketOptions& options) {
  setOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (options.sendBuffer >= 0) setOption(fd, SOL_SOCKET, SO_SNDBUF, options.sendBuffer);
  if (options.receiveBuffer >= 0) setOption(fd, SOL_SOCKET, SO_RCVBUF, options.receiveBuffer);
  watchSilence(fd, options.silence);
}

}  // namespace tutti::net::tcp
