// Wakes a thread that sleeps in poll() or epoll_wait().
#pragma once

#include <sys/eventfd.h>

#include "base/fd.h"

namespace tutti {

/// A descriptor that is readable from wake() until drain(). Whoever sleeps watches fd() for input.
class Waker {
 public:
  /// Nobody's; wake() does nothing.
  Waker() = default;
  /// Not valid() where the system gives no descriptor; errno says why.
  static Waker create() {
    Waker waker;
    waker.fd_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return waker;
  }
  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }

  /// Any thread, also before the other sleeps.
  void wake() const {
    if (fd_.valid()) static_cast<void>(::eventfd_write(fd_.get(), 1));
  }
  /// Forgets every wake() so far. Never waits.
  void drain() const {
    eventfd_t drained = 0;
    static_cast<void>(::eventfd_read(fd_.get(), &drained));
  }

 private:
  Fd fd_;
};

}  // namespace tutti
