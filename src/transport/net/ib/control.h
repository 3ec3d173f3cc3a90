// The control socket of a connection over verbs: set-up goes over it, and afterwards it tells whether the peer lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/socket/io_outcome.h"
#include "base/status.h"
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
  /// Left: it has closed in order. Reads what there is.
  Peer look();
  /// What look() said last; asks nothing.
  Peer last() const { return peer_; }
  /// Tells the peer that this end closes in order. Never waits.
  void sayBye();

  const Address& peer() const { return link_.peer; }
  const std::string& device() const { return link_.device; }

 private:
  Result<bool> moved(const IoOutcome& outcome, std::size_t bytes);
  Status closed(int error) const;
  Status overdue() const;

  tcp::SocketLink link_;
  Deadline deadline_;
  milliseconds setup_;
  std::size_t moved_ = 0;  ///< of the block under way
  Peer peer_ = Peer::There;
};

}  // namespace tutti::net::ib
