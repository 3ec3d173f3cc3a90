// The data sockets of one connection: messages are split over them.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/net/tcp/helper.h"
#include "transport/net/tcp/stream.h"

namespace tutti::net::tcp {

/// All data sockets, driven by helper threads or by the caller. Used by one thread at a time.
class SocketStreams {
 public:
  SocketStreams(std::vector<Fd> sockets, device::Direction direction, std::size_t minPiece);

  /// Deals the sockets out to at most `threads` helpers. Errors: ncclSystemError.
  Status startHelpers(int threads);

  bool none() const { return streams_.empty(); }
  /// The sockets, to ask the system about.
  std::vector<int> fds() const;
  /// Takes a message on its way. Both ends take the same messages in the same order, so they agree on what travels
  /// where. `left` is set to the number of its pieces and counts down to 0.
  void add(std::byte* data, std::size_t bytes, std::atomic<std::uint32_t>& left);
  /// Moves what goes without waiting, unless helpers do. How a socket failed, if one has.
  std::optional<IoOutcome> advance();

 private:
  std::deque<SocketStream> streams_;
  std::vector<std::unique_ptr<SocketHelper>> helpers_;
  device::Direction direction_;
  std::size_t minPiece_;
  std::size_t next_ = 0;  ///< socket of the next piece
};

/// Bytes of each piece but the last when `bytes` are split over at most `streams` sockets.
std::size_t socketPieceBytes(std::size_t bytes, std::size_t streams, std::size_t minPiece);

}  // namespace tutti::net::tcp
