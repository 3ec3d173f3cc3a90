// TCP with deadlines and aborts: every call here returns within its Wait.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/ranks/abort.h"
#include "base/socket/address.h"
#include "base/socket/io_outcome.h"
#include "base/status.h"

namespace tutti {

/// What bounds a wait: a deadline, an Abort (looked at every 100 ms), and a file descriptor that wakes it at once when
/// it becomes readable (an eventfd that an abort listener writes). Borrowed pointers; they outlive the call.
struct Wait {
  Deadline deadline = Deadline::in(std::chrono::seconds(60));
  const Abort* abort = nullptr;
  int wakeFd = -1;
};

/// Polls one descriptor for `events` (POLLIN, POLLOUT) within `wait`. Done: ready (or in error: the next call tells).
IoOutcome pollFd(int fd, short events, const Wait& wait);

/// One connected TCP stream: non-blocking, close-on-exec, no delay, no SIGPIPE. One thread may send while another
/// receives; shutdown() may come from any thread and wakes both.
class Socket {
 public:
  /// How often to try again where nobody listens yet: try i sleeps i * step.
  struct Retry {
    int count = 34;
    milliseconds step{100};
  };

  Socket() = default;
  /// Takes over a connected descriptor.
  Socket(Fd fd, const Address& peer) : fd_(std::move(fd)), peer_(peer) {}

  /// Connects; on ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH (and the like) tries again until `retry` or `wait` is used up.
  /// `from`: local address to bind first, or unset. Errors: ncclRemoteError with the address and the system's words,
  /// ncclSystemError, the Abort's status.
  static Result<Socket> connect(const Address& peer, const Wait& wait, const Retry& retry, const Address& from = {});
  static Result<Socket> connect(const Address& peer, const Wait& wait) { return connect(peer, wait, Retry()); }
  /// One try without log lines, for callers that have somewhere else to go. The socket is invalid unless Done.
  static IoOutcome tryConnect(const Address& peer, const Wait& wait, Socket* connected, const Address& from = {});
  /// The same with `knock`, the first bytes of what is to be said, in the very first packet (knock.h), as TCP Fast Open
  /// does without a cookie. `sent`: how many of them need not be sent any more; 0 where the system has no such thing,
  /// and the connection has come about without. A listener that knows nothing of it hears them after the connection
  /// stands, as always.
  static IoOutcome tryKnock(const Address& peer, const Wait& wait, std::span<const std::byte> knock, Socket* connected,
                            std::size_t* sent);

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  const Address& peer() const { return peer_; }
  /// Our own end; unset where the system does not say.
  Address local() const;

  /// Whole messages. Errors: ncclRemoteError (closed, reset, late), ncclSystemError, the Abort's status.
  Status sendAll(std::span<const std::byte> data, const Wait& wait);
  Status recvAll(std::span<std::byte> data, const Wait& wait);
  template <class T>
  Status sendValue(const T& value, const Wait& wait) {
    static_assert(std::is_trivially_copyable_v<T>);
    return sendAll(std::as_bytes(std::span(&value, 1)), wait);
  }
  template <class T>
  Status recvValue(T& value, const Wait& wait) {
    static_assert(std::is_trivially_copyable_v<T>);
    return recvAll(std::as_writable_bytes(std::span(&value, 1)), wait);
  }

  /// The same without log lines.
  IoOutcome sendQuietly(std::span<const std::byte> data, const Wait& wait);
  IoOutcome recvQuietly(std::span<std::byte> data, const Wait& wait);
  /// As much as goes without waiting: Done (bytes > 0), WouldBlock, Closed or Failed.
  IoOutcome trySend(std::span<const std::byte> data);
  IoOutcome tryRecv(std::span<std::byte> data);
  /// Gives birth to the error of an outcome that was not Done. `doing`: "receiving from", "connecting to", …
  Status failure(const IoOutcome& outcome, const char* doing, const Wait& wait) const;

  /// Ends both directions: the peer and our own waiting threads see it closed.
  void shutdown();
  void close() { fd_.reset(); }
  /// Gives up the descriptor.
  [[nodiscard]] Fd release() { return std::move(fd_); }

 private:
  Fd fd_;
  Address peer_;
};

/// A listening TCP socket.
class Listener {
 public:
  struct Options {
    int backlog = 16384;     ///< the kernel cuts it to net.core.somaxconn
    bool reusePort = false;  ///< SO_REUSEADDR and SO_REUSEPORT, for fixed ports (NCCL_COMM_ID)
  };

  Listener() = default;
  /// Listens on `on`; port 0 takes a free one. Errors: ncclSystemError with address and system's words.
  static Result<Listener> listen(const Address& on, const Options& options);
  static Result<Listener> listen(const Address& on) { return listen(on, Options()); }

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  /// With the port that the system chose.
  const Address& address() const { return address_; }

  /// Waits for one connection. Errors: ncclRemoteError (nobody came in time), ncclSystemError, the Abort's status.
  Result<Socket> accept(const Wait& wait);
  /// The same without log lines; the socket is invalid unless Done.
  IoOutcome acceptQuietly(const Wait& wait, Socket* accepted);
  void close() { fd_.reset(); }

 private:
  Fd fd_;
  Address address_;
};

}  // namespace tutti
