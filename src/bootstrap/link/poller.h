// epoll with 64-bit names, and non-blocking accept: what the root and the ranks' threads wait on.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "base/socket/socket.h"
#include "base/threads/waker.h"

namespace tutti::bootstrap {

/// Waits on many descriptors at a cost that does not grow with their number. wait() by one thread; the rest by any.
class Poller {
 public:
  /// Errors: ncclSystemError.
  static Result<Poller> create();

  /// Watches `fd` for input (and output where `write`) under `name`. Names are the caller's; kWakeName is reserved.
  bool add(int fd, std::uint64_t name, bool write = false);
  void setWrite(int fd, std::uint64_t name, bool write);
  /// Also no input where not `read`: an event that says readable then means that the connection is gone.
  void setInterest(int fd, std::uint64_t name, bool read, bool write);
  void remove(int fd);
  /// Makes the current or next wait() return.
  void wake() { waker_.wake(); }

  struct Event {
    std::uint64_t name = 0;
    bool readable = false;  ///< or closed, or in error: reading tells
    bool writable = false;
  };
  /// Sleeps until something happens or `limit`; for ever where limit is negative. 0, or the system's error: then its
  /// descriptor is its own no more, nothing will ever happen, and it has slept for a moment.
  int wait(std::vector<Event>& events, milliseconds limit);

  static constexpr std::uint64_t kWakeName = ~std::uint64_t{0};

 private:
  Fd epoll_;
  Waker waker_;
};

enum class AcceptKind { Accepted, Nothing, NoDescriptors };
/// Takes one waiting connection without blocking; the listener must be non-blocking (makeNonBlocking). After
/// NoDescriptors errno says what there is none of.
AcceptKind acceptNow(int listenFd, Socket* accepted);
void makeNonBlocking(int fd);
/// Whether closing tells the peer by a reset instead of an end of stream. It costs the kernel one packet and no memory
/// afterwards. What a listener accepts inherits it.
void setAbrupt(int fd, bool abrupt);
/// Raises the soft limit of open files to the hard one: a root holds one connection per rank.
void raiseFileLimit();
/// Lets the kernel find out that the peer's host is unreachable within about `silence`. It does not find out about a
/// stopped process, for which its kernel still answers.
void watchSilence(int fd, milliseconds silence);

}  // namespace tutti::bootstrap
