#include "base/socket/socket.h"

#include <poll.h>

#include <cerrno>

#include "base/log.h"
#include "base/socket/errors.h"

namespace tutti {

namespace {

using Kind = IoOutcome::Kind;

IoOutcome ended(Kind kind, std::size_t bytes, int error = 0) {
  return {.kind = kind, .bytes = bytes, .error = error};
}

bool wouldBlock(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

/// Moves all of `data` by move(rest), waiting for the socket to be ready for `event` whenever it would block.
template <class Byte, class Move>
IoOutcome moveAll(int fd, std::span<Byte> data, short event, const Wait& wait, const Move& move) {
  std::size_t moved = 0;
  while (moved < data.size()) {
    IoOutcome outcome = move(data.subspan(moved));
    moved += outcome.bytes;
    if (outcome.kind == Kind::WouldBlock) outcome = pollFd(fd, event, wait);
    if (!outcome.done()) return ended(outcome.kind, moved, outcome.error);
  }
  return ended(Kind::Done, moved);
}

}  // namespace

Address Socket::local() const {
  Address address = Address::any(AF_INET6);
  socklen_t length = address.length();
  if (::getsockname(fd(), address.raw(), &length) != 0) return {};
  return address;
}

IoOutcome Socket::trySend(std::span<const std::byte> data) {
  while (true) {
    const ssize_t sent = ::send(fd(), data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return ended(Kind::Done, static_cast<std::size_t>(sent));
    if (errno == EINTR) continue;
    if (wouldBlock(errno)) return ended(Kind::WouldBlock, 0);
    return ended(meansPeerGone(errno) ? Kind::Closed : Kind::Failed, 0, errno);
  }
}

IoOutcome Socket::tryRecv(std::span<std::byte> data) {
  if (data.empty()) return {};
  while (true) {
    const ssize_t received = ::recv(fd(), data.data(), data.size(), MSG_DONTWAIT);
    if (received > 0) return ended(Kind::Done, static_cast<std::size_t>(received));
    if (received == 0) return ended(Kind::Closed, 0);
    if (errno == EINTR) continue;
    if (wouldBlock(errno)) return ended(Kind::WouldBlock, 0);
    return ended(meansPeerGone(errno) ? Kind::Closed : Kind::Failed, 0, errno);
  }
}

IoOutcome Socket::sendQuietly(std::span<const std::byte> data, const Wait& wait) {
  return moveAll(fd(), data, POLLOUT, wait, [this](std::span<const std::byte> rest) { return trySend(rest); });
}

IoOutcome Socket::recvQuietly(std::span<std::byte> data, const Wait& wait) {
  return moveAll(fd(), data, POLLIN, wait, [this](std::span<std::byte> rest) { return tryRecv(rest); });
}

Status Socket::failure(const IoOutcome& outcome, const char* doing, const Wait& wait) const {
  switch (outcome.kind) {
    case Kind::Aborted:
      // The abort's own error has been told already.
      if (wait.abort != nullptr && wait.abort->raised()) return wait.abort->status();
      return Status(ncclRemoteError);
    case Kind::Closed:
      return fail(ncclRemoteError,
                  "While {} {} the connection was closed by the peer after {} bytes: that process "
                  "ended or gave up; look at its log",
                  doing, peer_.text(), outcome.bytes);
    case Kind::WouldBlock:
    case Kind::TimedOut:
      return fail(ncclRemoteError,
                  "While {} {} the time ran out after {} bytes: the peer hangs, or the network drops packets", doing,
                  peer_.text(), outcome.bytes);
    case Kind::Done:
    case Kind::Failed:
      break;
  }
  return fail(isLocalTrouble(outcome.error) ? ncclSystemError : ncclRemoteError, "While {} {}: {}{}", doing,
              peer_.text(), errnoText(outcome.error), socketRemedy(outcome.error));
}

Status Socket::sendAll(std::span<const std::byte> data, const Wait& wait) {
  const IoOutcome outcome = sendQuietly(data, wait);
  return outcome.done() ? Status() : failure(outcome, "sending to", wait);
}

Status Socket::recvAll(std::span<std::byte> data, const Wait& wait) {
  const IoOutcome outcome = recvQuietly(data, wait);
  return outcome.done() ? Status() : failure(outcome, "receiving from", wait);
}

void Socket::shutdown() {
  if (fd_.valid()) static_cast<void>(::shutdown(fd_.get(), SHUT_RDWR));
}

}  // namespace tutti
