// One data socket of a connection, and the pieces of messages that wait to move over it.
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/fd.h"
#include "base/socket/io_outcome.h"
#include "device/direction.h"

namespace tutti::net::tcp {

/// Requests that may be under way on one connection.
inline constexpr std::uint32_t kSocketRequests = 32;

using device::Direction;

/// A part of a message. `left` counts the parts of the message that have not moved yet; the memory and the counter stay
/// until it is 0.
struct SocketPiece {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::atomic<std::uint32_t>* left = nullptr;
};

/// Moves pieces in order. One thread pushes, one (perhaps the same) advances.
class SocketStream {
 public:
  SocketStream(Fd socket, device::Direction direction) : socket_(std::move(socket)), direction_(direction) {}

  int fd() const { return socket_.get(); }
  /// What poll() shall wait for while something waits here.
  short waitsFor() const { return direction_ == device::Direction::Send ? POLLOUT : POLLIN; }
  /// At most one piece of each request: the ring never overflows.
  void push(const SocketPiece& piece);
  /// Nothing waits. Any thread.
  bool idle() const { return finished_.load() == pushed_.load(); }
  /// Moves what goes without waiting. Done: nothing is left; WouldBlock: the rest has to wait; else how it failed.
  IoOutcome advance();

 private:
  IoOutcome moveSome(const SocketPiece& piece);

  Fd socket_;
  device::Direction direction_;
  std::array<SocketPiece, kSocketRequests> pieces_;
  std::atomic<std::uint32_t> pushed_{0};
  std::atomic<std::uint32_t> finished_{0};
  std::size_t moved_ = 0;  ///< of the oldest piece
};

}  // namespace tutti::net::tcp
