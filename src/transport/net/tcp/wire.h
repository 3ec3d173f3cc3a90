// What the built-in network writes on its sockets, and how the two ends of a connection prove who they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/socket/address.h"
#include "base/status.h"
#include "plugin/network/net.h"
#include "transport/net/tcp/options.h"

namespace tutti::net::tcp {

using SocketNonce = std::array<std::byte, 16>;
using SocketProof = std::array<std::byte, 32>;

/// What a listener says of itself; the beginning of a NetHandle.
struct SocketHandle {
  std::uint64_t magic = 0;
  SocketNonce nonce{};  ///< fresh for each listener
  Address address;
  std::uint32_t inlineBytes = 0;  ///< the listening side's SocketOptions
  std::uint32_t minPiece = 0;
  std::uint32_t streams = 0;
  std::uint64_t attempt = 0;  ///< written by connect(), to find its state again; 0 in what the listener says
};
static_assert(std::is_trivially_copyable_v<SocketHandle> && sizeof(SocketHandle) <= sizeof(plugin::NetHandle));

/// The first bytes on every socket of a connection, from the side that connects.
struct SocketHello {
  std::uint64_t magic = 0;
  std::uint32_t stream = 0;  ///< 0: the control socket, then the data sockets
  std::uint32_t streams = 0;
  SocketNonce nonce{};  ///< equal on all sockets of a connection
  SocketProof proof{};
};
static_assert(std::is_trivially_copyable_v<SocketHello> && sizeof(SocketHello) == 64);

/// The listening side's answer on the control socket, when all sockets are there.
struct SocketAnswer {
  std::uint64_t magic = 0;
  SocketProof proof{};
  std::array<std::byte, 24> unused{};
};
static_assert(std::is_trivially_copyable_v<SocketAnswer> && sizeof(SocketAnswer) == 64);

/// All that is written on a control socket comes in whole units, contents of messages with padding behind them. So
/// contents begin at whole cache lines of the system's buffers, which it packs one behind the other; elsewhere copying
/// them there and back takes twice the time.
inline constexpr std::size_t kSocketUnit = 64;

/// Bytes behind `bytes` up to a whole unit.
constexpr std::size_t socketPadding(std::size_t bytes) {
  return (kSocketUnit - bytes % kSocketUnit) % kSocketUnit;
}

/// In front of each message, on the control socket.
struct SocketHeader {
  std::uint32_t bytes = 0;              ///< of the message; kSocketBye: there will be none
  std::uint32_t sequence = 0;           ///< number of the message, modulo 2^32: tells a damaged stream
  std::array<std::byte, 56> content{};  ///< the whole message where it fits
};
static_assert(sizeof(SocketHeader) == kSocketUnit);

inline constexpr std::uint64_t kSocketMagic = 0x7475747469736b31;  // "tuttisk1": version 1 of what this file says
inline constexpr std::uint32_t kSocketBye = 0xffffffff;

/// What both ends of a connection know of the communicator.
struct SocketIdentity {
  std::uint64_t commId = 0;
  std::array<std::byte, 32> secret{};
};

/// Must have succeeded in the process before anything else here. Any thread. Errors: ncclSystemError.
Status initSocketProofs();
SocketNonce freshSocketNonce();

/// A hello with its proof: HMAC-SHA-256 with the communicator's secret over the listener's nonce and all of the hello.
/// The listener's nonce is used once, so a hello that was overheard opens nothing later.
SocketHello makeHello(const SocketIdentity& identity, const SocketNonce& listener, const SocketNonce& connector,
                      std::uint32_t stream, std::uint32_t streams);
SocketAnswer makeAnswer(const SocketIdentity& identity, const SocketNonce& listener, const SocketNonce& connector);
/// Whether the proof is right; compares in constant time.
bool checkHello(const SocketIdentity& identity, const SocketNonce& listener, const SocketHello& hello);
bool checkAnswer(const SocketIdentity& identity, const SocketNonce& listener, const SocketNonce& connector,
                 const SocketAnswer& answer);

}  // namespace tutti::net::tcp
