// The sending end of a connection of the built-in network.
#pragma once

#include <vector>

#include "transport/net/tcp/connection.h"
#include "transport/net/tcp/io.h"

namespace tutti::net::tcp {

class SocketSender final : public SocketConnection {
 public:
  explicit SocketSender(SocketLink link)
      : SocketConnection(std::move(link), device::Direction::Send), watches_(1 + streams_.fds().size()) {}
  /// Says goodbye if nothing is under way, so that the peer can tell an end in order from a death.
  ~SocketSender() override;

  /// Takes the message on; test() moves it, together with all others that wait. Null: all requests are taken.
  /// Errors: ncclInvalidArgument (more than 2^31 - 1 bytes), those of the connection.
  Result<SocketRequest*> isend(const plugin::NetBuffer& message);
  /// Whether the peer's host has acknowledged all, or has no room. Errors: ncclRemoteError, nothing has come through
  /// for SocketOptions::silence.
  Result<bool> delivered();

 private:
  Status moveControl() override;
  std::size_t gather(std::span<iovec> parts, std::size_t& count);
  void account(std::size_t moved);
  /// Has room for a message of `bytes`, from now on.
  void makeRoom(std::size_t bytes);

  std::vector<TcpAckMonitor> watches_;  ///< of the control socket, then of the data sockets
  std::size_t room_ = kLeastSendBuffer;
  std::uint32_t acked_ = 0;  ///< messages that are known to have been acknowledged, where there is one socket
};

}  // namespace tutti::net::tcp
