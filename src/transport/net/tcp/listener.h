// The accepting end of the built-in network, until a connection stands.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/socket/socket.h"
#include "base/socket/unproven.h"
#include "transport/net/tcp/devices.h"
#include "transport/net/tcp/link.h"
#include "transport/net/tcp/wire.h"

namespace tutti::net::tcp {

/// Waits for the sockets of one connection. Whoever cannot prove to be of the communicator is dropped without a word,
/// and holds nobody up. The kernel keeps a socket for a second until something has come on it; one on which no whole
/// hello is there when it is accepted takes one of the process's places for kUnprovenTime, or is reset, and its owner
/// dials again (connector.h). While the process has no descriptors the kernel keeps who waits, for three seconds at
/// most. Used by one thread at a time.
class SocketListener {
 public:
  /// Errors: ncclSystemError.
  static Result<std::unique_ptr<SocketListener>> open(const SocketDevice& device, const SocketOptions& options,
                                                      const SocketIdentity& identity);

  /// What the peer needs for its connect().
  SocketHandle handle() const;
  /// The connection, once; empty while it is not complete. Does not wait. Errors: ncclSystemError, ncclRemoteError (the
  /// peer is gone again, or there is no end within SocketOptions::setup of the first call, or of the peer's first
  /// socket).
  Result<std::optional<SocketLink>> accept();

 private:
  /// A socket that has not said who it is.
  struct Unauthenticated {
    Fd socket;
    Address address;
    std::array<std::byte, sizeof(SocketHello)> hello{};
    std::size_t read = 0;
    Deadline deadline = Deadline::in(kUnprovenTime);
    UnprovenPlaces::Place place;
  };

  SocketListener(Listener listener, const SocketDevice& device, const SocketOptions& options,
                 const SocketIdentity& identity);
  Status takeNew();
  Status onStarved(int error);
  Status cannotAccept(int error) const;
  void meet(Unauthenticated stranger);
  void hearStrangers();
  bool hear(Unauthenticated& stranger);
  bool admit(Unauthenticated& stranger);
  Status checkAdmitted() const;
  Status overdue() const;
  Result<std::optional<SocketLink>> finish();

  Listener listener_;
  std::string device_;
  SocketOptions options_;
  SocketIdentity identity_;
  SocketNonce nonce_;
  std::vector<Unauthenticated> unauthenticated_;
  SocketNonce connector_{};  ///< of the peer, once its first socket was admitted
  Address peer_;
  Deadline deadline_ = Deadline::never();          ///< begins with the first accept()
  Deadline rest_ = Deadline::in(milliseconds(0));  ///< until when nobody is taken, for want of descriptors
  Deadline starvedUntil_ = Deadline::never();      ///< when that is a failure
  std::vector<Fd> admitted_;                       ///< the control socket, then the data sockets
  std::size_t missing_;
};

}  // namespace tutti::net::tcp
