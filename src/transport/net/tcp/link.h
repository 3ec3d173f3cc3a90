// What set-up leaves of a connection of the built-in network: its sockets.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/socket/address.h"
#include "transport/net/tcp/options.h"

namespace tutti::net::tcp {

/// What a finished handshake leaves.
struct SocketLink {
  Fd control;
  std::vector<Fd> streams;
  std::string device;  ///< name of our interface
  Address peer;
  SocketOptions options;  ///< with the listening side's numbers where both must agree
};

}  // namespace tutti::net::tcp
