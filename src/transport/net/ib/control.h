// The control socket of a connection over verbs: set-up goes over it, and afterwards what ends have to agree upon; and
// it tells whether the peer lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/socket/io_outcome.h"
#include "base/status.h"
#include "transport/net/ib/wire.h"
#include "transport/net/tcp/link.h"

namespace tutti::net::ib {

/// Exchanges blocks of fixed size without waiting. Used by one thread at a time.
class ControlSocket {
 public:
  /// `label`: what it belongs to, for messages. The exchange must be over within `setup`.
  ControlSocket(tcp::SocketLink link, milliseconds setup);

  /// Goes on sending, or receiving, a block that begins with the first call. True: all of it has gone, or come. Errors:
  /// ncclRemoteError (the peer has closed, or is overdue).
  Result<bool> send(std::span<const std::byte> block);
  Result<bool> receive(std::span<std::byte> block);

  /// While neither says anything: an error if the peer has closed.
  Status checkStanding() const;

  /// How the peer stands after set-up.
  enum class Peer : std::uint8_t { There, Left, Gone };
  /// Left: it has closed in order. Reads and sends what can be at once.
  Peer look();
  /// What look() said last; asks nothing.
  Peer last() const { return peer_; }
  /// Tells the peer that this end closes in order. Never waits.
  void sayBye();

  /// After set-up: sends it, at once or with a later look(). To a peer that is gone nothing is sent.
  void tell(const ControlFrame& frame);
  /// The next that the peer has sent and look() has read.
  std::optional<ControlFrame> heard();

  const Address& peer() const { return link_.peer; }
  const std::string& device() const { return link_.device; }

 private:
  Result<bool> moved(const IoOutcome& outcome, std::size_t bytes);
  Status closed(int error) const;
  Status overdue() const;
  void flush();
  bool readSome();

  tcp::SocketLink link_;
  Deadline deadline_;
  milliseconds setup_;
  std::size_t moved_ = 0;  ///< of the block under way
  Peer peer_ = Peer::There;
  ControlFrame coming_;  ///< `got_` bytes of it are there
  std::size_t got_ = 0;
  std::deque<ControlFrame> heard_;
  std::vector<std::byte> going_;  ///< has not gone yet
};

}  // namespace tutti::net::ib
