// How the built-in network uses its sockets.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace tutti {
struct Params;
}

namespace tutti::net::tcp {

/// Whose virtual network card a device is, as far as it matters for defaults.
enum class SocketVendor : std::uint8_t { Other, Aws, Google };

/// Numbers of one device's connections. `streams`, `inlineBytes` and `minPiece` are the listening side's on both ends.
struct SocketOptions {
  int threads = 0;  ///< helper threads of one end; 0: whoever calls test() moves the bytes
  int streams = 0;  ///< data sockets beside the control socket; 0: the control socket carries everything
  std::uint32_t inlineBytes = 16384;  ///< messages up to this many bytes follow their header on the control socket
  std::uint32_t minPiece = 65536;     ///< least bytes of a piece of a message that is split over data sockets
  int sendBuffer = -1;                ///< SO_SNDBUF in bytes; -1: the system's choice
  int receiveBuffer = -1;             ///< SO_RCVBUF, likewise
  int retries = 34;                   ///< further tries of a connect() that was refused or found no way
  milliseconds retryStep{100};        ///< try i comes i * retryStep after the one before
  milliseconds setup{90000};          ///< for all of a connect() or accept(), once it has begun
  milliseconds silence{5000};         ///< of a peer's host, while we wait for it, that ends a connection
};

/// Most data sockets of one connection.
inline constexpr int kMaxSocketStreams = 64;

/// The settings, with defaults that suit the device. Threads times sockets above kMaxSocketStreams are reduced;
/// `*reduced` (may be null) tells.
SocketOptions socketOptions(const Params& params, SocketVendor vendor, bool* reduced = nullptr);

}  // namespace tutti::net::tcp
