// Making connections: Socket::connect and Listener.
#include <fmt/core.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <cerrno>

#include "base/log.h"
#include "base/socket/errors.h"
#include "base/socket/socket.h"

namespace tutti {

namespace {

using Kind = IoOutcome::Kind;

IoOutcome failedWith(int error) {
  return {.kind = Kind::Failed, .bytes = 0, .error = error};
}

void setOption(int fd, int level, int name) {
  const int on = 1;
  // Options only make things faster or easier: a system that refuses one still works.
  static_cast<void>(::setsockopt(fd, level, name, &on, sizeof(on)));
}

/// Waits for a connect() in progress and asks how it ended.
IoOutcome finishConnect(int fd, const Wait& wait) {
  if (const IoOutcome outcome = pollFd(fd, POLLOUT, wait); !outcome.done()) return outcome;
  int error = 0;
  socklen_t length = sizeof(error);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  return error == 0 ? IoOutcome{} : failedWith(error);
}

Fd freshSocket(const Address& peer) {
  Fd fd(::socket(peer.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.valid()) setOption(fd.get(), IPPROTO_TCP, TCP_NODELAY);
  return fd;
}

IoOutcome startConnect(int fd, const Address& peer, const Wait& wait) {
  if (::connect(fd, peer.raw(), peer.length()) == 0) return {};
  // An interrupted connect goes on in the background as one in progress does.
  return errno == EINPROGRESS || errno == EINTR ? finishConnect(fd, wait) : failedWith(errno);
}

/// `connected` is set where the connect() of `fd` went well.
IoOutcome finish(const IoOutcome& outcome, Fd fd, const Address& peer, Socket* connected) {
  if (!outcome.done()) return outcome;
  Socket made(std::move(fd), peer);
  // Where nobody listens at a port that the system gives to clients, a client may be given that very port, and is then
  // connected with itself.
  if (made.local() == peer) return failedWith(ECONNREFUSED);
  *connected = std::move(made);
  return {};
}

/// Sleeps `span`, less if the wait ends. False: it ended.
bool sleepWithin(milliseconds span, const Wait& wait) {
  Wait nap = wait;
  nap.deadline = wait.deadline.earlierOf(Deadline::in(span));
  const bool slept = pollFd(-1, 0, nap).kind == Kind::TimedOut;
  return slept && !wait.deadline.expired();
}

}  // namespace

IoOutcome Socket::tryConnect(const Address& peer, const Wait& wait, Socket* connected, const Address& from) {
  Fd fd = freshSocket(peer);
  if (!fd.valid()) return failedWith(errno);
  if (from.set() && ::bind(fd.get(), from.raw(), from.length()) != 0) return failedWith(errno);
  const IoOutcome outcome = startConnect(fd.get(), peer, wait);
  return finish(outcome, std::move(fd), peer, connected);
}

IoOutcome Socket::tryKnock(const Address& peer, const Wait& wait, std::span<const std::byte> knock, Socket* connected,
                           std::size_t* sent) {
  *sent = 0;
  Fd fd = freshSocket(peer);
  if (!fd.valid()) return failedWith(errno);
  setOption(fd.get(), IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE);
  const ssize_t taken = ::sendto(fd.get(), knock.data(), knock.size(), MSG_FASTOPEN | MSG_NOSIGNAL | MSG_DONTWAIT,
                                 peer.raw(), peer.length());
  if (taken >= 0) *sent = static_cast<std::size_t>(taken);
  const IoOutcome outcome =
      taken >= 0 || errno == EINPROGRESS ? finishConnect(fd.get(), wait) : startConnect(fd.get(), peer, wait);
  return finish(outcome, std::move(fd), peer, connected);
}

Result<Socket> Socket::connect(const Address& peer, const Wait& wait, const Retry& retry, const Address& from) {
  Socket socket;
  IoOutcome outcome = tryConnect(peer, wait, &socket, from);
  for (int again = 1; again <= retry.count && outcome.kind == Kind::Failed && mayComeUpYet(outcome.error); ++again) {
    if (again == 1)
      info(kNet | kBootstrap, "Connecting to {}: {}, trying again", peer.text(), errnoText(outcome.error));
    if (!sleepWithin(again * retry.step, wait)) break;
    outcome = tryConnect(peer, wait, &socket, from);
  }
  if (outcome.done()) return socket;
  if (wait.abort != nullptr && wait.abort->raised()) outcome.kind = Kind::Aborted;
  return Socket(Fd(), peer).failure(outcome, "connecting to", wait);
}

Result<Listener> Listener::listen(const Address& on, const Options& options) {
  const auto failed = [&on](const char* call) {
    const char* remedy = "";
    if (errno == EADDRINUSE) remedy = ". Another process listens there: choose another port, or wait for it to end";
    if (errno == EADDRNOTAVAIL) remedy = ". The address is not one of this host's interfaces";
    if (errno == EMFILE) remedy = ". Too many open files: raise ulimit -n";
    return fail(ncclSystemError, "Listening on {} failed in {}: {}{}", on.text(), call, errnoText(errno), remedy);
  };
  Listener listener;
  listener.fd_ = Fd(::socket(on.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.valid()) return failed("socket");
  const int fd = listener.fd();
  if (options.reusePort) {
    setOption(fd, SOL_SOCKET, SO_REUSEADDR);
    setOption(fd, SOL_SOCKET, SO_REUSEPORT);
  }
  if (::bind(fd, on.raw(), on.length()) != 0) return failed("bind");
  if (::listen(fd, options.backlog) != 0) return failed("listen");
  listener.address_ = Address::any(on.family());
  socklen_t length = listener.address_.length();
  if (::getsockname(fd, listener.address_.raw(), &length) != 0) return failed("getsockname");
  return listener;
}

IoOutcome Listener::acceptQuietly(const Wait& wait, Socket* accepted) {
  while (true) {
    if (const IoOutcome outcome = pollFd(fd(), POLLIN, wait); !outcome.done()) return outcome;
    Address peer = Address::any(AF_INET6);
    socklen_t length = peer.length();
    Fd connection(::accept4(fd(), peer.raw(), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection.valid()) {
      setOption(connection.get(), IPPROTO_TCP, TCP_NODELAY);
      *accepted = Socket(std::move(connection), peer);
      return {};
    }
    // A connection may be gone again, or another thread took it: the next one may come.
    const bool gone = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED || errno == EPROTO;
    if (!gone) return failedWith(errno);
  }
}

Result<Socket> Listener::accept(const Wait& wait) {
  Socket socket;
  const IoOutcome outcome = acceptQuietly(wait, &socket);
  if (outcome.done()) return socket;
  if (outcome.kind == Kind::TimedOut) {
    return fail(ncclRemoteError, "Nobody connected to {} in time", address_.text());
  }
  return Socket(Fd(), address_).failure(outcome, "accepting on", wait);
}

}  // namespace tutti
