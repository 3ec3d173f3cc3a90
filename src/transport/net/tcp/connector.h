// The connecting end of the built-in network, until a connection stands.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/socket/io_outcome.h"
#include "transport/net/tcp/devices.h"
#include "transport/net/tcp/link.h"
#include "transport/net/tcp/wire.h"

namespace tutti::net::tcp {

/// Opens the sockets of one connection, step by step. Used by one thread at a time.
class SocketConnector {
 public:
  /// `options`: our own; what both ends must agree on is taken from the handle.
  SocketConnector(const SocketDevice& device, const SocketHandle& handle, const SocketOptions& options,
                  const SocketIdentity& identity);

  /// Does what can be done without waiting. Empty: not yet. The listening side must have accepted before it is done.
  /// Errors: ncclRemoteError (refused for good, closed, not of our communicator, no end within SocketOptions::setup),
  /// ncclSystemError.
  Result<std::optional<SocketLink>> advance();

 private:
  enum class Step : std::uint8_t { Pausing, Connecting, Greeting, Ready };
  struct Dial {
    Step step = Step::Pausing;
    Fd socket;
    SocketHello hello;
    std::size_t sent = 0;
    int tries = 0;
    int turnedAway = 0;               ///< so many times
    SteadyClock::time_point again{};  ///< when the pause ends
  };

  Status advance(Dial& dial);
  Status begin(Dial& dial);
  Status checkConnected(Dial& dial);
  Status greet(Dial& dial);
  Status retry(Dial& dial, int error);
  /// The dial has been lost before the connection stood: dials again if it was only turned away.
  Status lost(Dial& dial, const IoOutcome& outcome);
  Status checkStanding(Dial& dial);
  Status closedEarly(const IoOutcome& outcome) const;
  Status overdue() const;
  Result<bool> heardAnswer();
  SocketLink finish();

  std::string device_;
  Address peer_;
  SocketNonce listener_;
  SocketNonce connector_;
  SocketOptions options_;
  SocketIdentity identity_;
  Deadline deadline_;
  std::vector<Dial> dials_;  ///< the control socket, then the data sockets
  SocketAnswer answer_;
  std::size_t heard_ = 0;  ///< bytes of the answer
};

}  // namespace tutti::net::tcp
