// The sending end of a connection of the built-in network.
#pragma once

#include "transport/net/socket/socket_connection.h"

namespace tutti {

class SocketSender final : public SocketConnection {
 public:
  explicit SocketSender(SocketLink link) : SocketConnection(std::move(link), SocketDirection::Send) {}
  /// Says goodbye if nothing is under way, so that the peer can tell an end in order from a death.
  ~SocketSender() override;

  /// Takes the message on its way, and moves what goes at once. Null: all requests are taken.
  /// Errors: ncclInvalidArgument (more than 2^31 - 1 bytes), those of the connection.
  Result<SocketRequest*> isend(const NetBuffer& message);

 private:
  Status moveControl() override;
  std::size_t gather(std::span<iovec> parts, std::size_t& count);
  void account(std::size_t moved);
};

}  // namespace tutti
