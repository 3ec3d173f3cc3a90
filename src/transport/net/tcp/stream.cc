#include "transport/net/tcp/stream.h"

#include "transport/net/tcp/io.h"

namespace tutti::net::tcp {

void SocketStream::push(const SocketPiece& piece) {
  const std::uint32_t at = pushed_.load(std::memory_order_relaxed);
  pieces_[at % kSocketRequests] = piece;
  // Ordered against the flag of a helper that falls asleep (socket_helper.h).
  pushed_.store(at + 1, std::memory_order_seq_cst);
}

IoOutcome SocketStream::moveSome(const SocketPiece& piece) {
  iovec rest{piece.data + moved_, piece.bytes - moved_};
  const IoOutcome outcome =
      direction_ == device::Direction::Send ? sendParts(fd(), {&rest, 1}) : receiveParts(fd(), {&rest, 1});
  moved_ += outcome.bytes;
  // Less than all means that the socket has no more room, or no more bytes.
  if (outcome.done() && moved_ < piece.bytes) return {.kind = IoOutcome::Kind::WouldBlock};
  return outcome;
}

IoOutcome SocketStream::advance() {
  std::uint32_t at = finished_.load(std::memory_order_relaxed);
  while (at != pushed_.load(std::memory_order_acquire)) {
    const SocketPiece piece = pieces_[at % kSocketRequests];
    if (const IoOutcome outcome = moveSome(piece); !outcome.done()) return outcome;
    moved_ = 0;
    // First the place in the ring: once the last piece of a request is told of, its place may be used again.
    finished_.store(++at, std::memory_order_release);
    piece.left->fetch_sub(1, std::memory_order_release);
  }
  return {};
}

}  // namespace tutti::net::tcp
