// Clients and servers of the handshake, by hand.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "bootstrap/link/dial.h"
#include "bootstrap/link/paced_listener.h"

namespace tutti::test {

/// Whether `condition` comes true within the time that a busy machine may need.
inline bool eventually(const std::function<bool()>& condition) {
  const Deadline deadline = Deadline::in(std::chrono::seconds(20));
  while (!condition() && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
  return condition();
}

inline Socket connectTo(const Address& at) {
  Socket socket;
  EXPECT_TRUE(Socket::tryConnect(at, {Deadline::in(std::chrono::seconds(20)), nullptr, -1}, &socket).done());
  return socket;
}

/// A client that has said hello with `key`.
inline Socket greet(const Address& at, const bootstrap::Key& key) {
  Socket socket = connectTo(at);
  const bootstrap::Hello hello = bootstrap::ClientHandshake(key, bootstrap::Purpose::Peer, 1, 0).hello();
  (void)socket.trySend(std::as_bytes(std::span(&hello, 1)));
  return socket;
}

/// How a connection ends: ECONNRESET, or 0 for an end of stream; -1 if it does not, within the time given.
inline int endOf(Socket& socket, milliseconds within = std::chrono::seconds(20)) {
  std::byte byte{};
  const IoOutcome outcome = socket.recvQuietly(std::span(&byte, 1), {Deadline::in(within), nullptr, -1});
  if (outcome.kind == IoOutcome::Kind::TimedOut || outcome.done()) return -1;
  return outcome.error;
}

/// While it lives, this process has no file descriptor left.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const Fd probe(::dup(2));
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(probe.get());
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace tutti::test
