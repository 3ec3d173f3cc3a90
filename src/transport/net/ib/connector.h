// The connecting end of the network over verbs, until a connection stands.
#pragma once

#include <memory>
#include <vector>

#include "transport/net/ib/wire.h"

namespace tutti::net::tcp {
class SocketConnector;
}

namespace tutti::net::ib {

class IbSender;
struct IbLink;

/// Opens the control socket, makes the queue pairs, exchanges their descriptions and connects them, step by step. Used
/// by one thread at a time.
class IbConnector {
 public:
  /// `ports`: of the device, which outlive the connection. `control`: dials the listener of `handle`.
  IbConnector(std::vector<const IbPort*> ports, const IbHandle& handle, const IbOptions& options,
              std::unique_ptr<tcp::SocketConnector> control, milliseconds setup);
  ~IbConnector();

  /// Does what can be done without waiting. Null: not yet. Errors: those of SocketConnector, ControlSocket and
  /// QueuePairs.
  Result<std::unique_ptr<IbSender>> advance();

 private:
  enum class Step : std::uint8_t { Dialling, Telling, Hearing, Connecting, Announcing };
  Status makeQueuePairs();
  Result<bool> step();

  std::unique_ptr<IbLink> link_;
  std::size_t queuePairs_;
  std::unique_ptr<tcp::SocketConnector> dial_;
  milliseconds setup_;
  Step step_ = Step::Dialling;
  SideBlock own_;
  SideBlock remote_;
};

/// Queue pairs of a connection between devices of so many ports: each side's setting counts for its own ports.
std::size_t queuePairsFor(std::size_t ports, std::size_t remotePorts, std::size_t perPort);

}  // namespace tutti::net::ib
