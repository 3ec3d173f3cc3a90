// What a rank and the rank that sends in its stead say to each other over a local socket, and how each knows the other
// to be of its communicator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "device/conn_view.h"
#include "plugin/network/net.h"
#include "transport/common/local_socket.h"

namespace tutti::net::pxn {

// How all of it is said.
using transport::PacketIo;
using transport::packetOf;
using transport::ReceivedPacket;
using transport::receivePacket;
using transport::sendPacket;

using Secret = std::array<std::byte, 32>;  ///< of the communicator, for this use
using Nonce = std::array<std::byte, 16>;
using Proof = std::array<std::byte, 32>;

/// Begins every message.
enum class Kind : std::uint32_t {
  Hello = 0x72656c01,
  Challenge,
  Order,
  Pool,
  Memory,
  Joined,
  Meet,
  Ready,
  Failed,
  Wake
};

/// Sender, first. Each message is one packet of fixed size and trivially copyable. The pass shows that it knows the
/// secret: a relay closes the lines of all others, without a word.
struct Hello {
  Kind kind = Kind::Hello;
  std::uint32_t version = 4;
  std::int32_t sender = -1;
  std::int32_t relay = -1;
  Nonce nonce{};
  Proof pass{};
};

/// Relay: proves that it knows the secret.
struct Challenge {
  Kind kind = Kind::Challenge;
  Nonce nonce{};
  Proof proof{};
};

/// Sender: proves the same, and says what is to be done.
struct Order {
  Kind kind = Kind::Order;
  Proof proof{};
  std::int32_t peer = -1;  ///< the receiver
  std::int32_t channel = -1;
  device::ConnKind connKind = device::ConnKind::Graph;
  std::int32_t netDevice = -1;
  device::SlotBytes slotBytes{};
  std::uint32_t sharedSlots = 0;                 ///< with other messages on the channel; 0: the connection has its own
  std::array<plugin::NetHandle, 2> listeners{};  ///< of the receiver
  std::uint32_t parting = 0;                     ///< what it says of parting (net::WireHandle)
};

/// Relay: with shared slots Pool, with a descriptor; then Memory, with another, and it calls the receiver; then Joined;
/// when the sender has said Meet, for the receiver has joined as well, Ready. Or Failed, at any time before.
struct Answer {
  Kind kind = Kind::Failed;
  std::int32_t code = 0;          ///< Failed: an ncclResult_t
  std::uint64_t bytes = 0;        ///< Memory, Pool: of the segment
  std::uint64_t pool = 0;         ///< Pool: which; the same for all connections that share it
  std::array<char, 1000> text{};  ///< Failed: why; ends in a zero
};

/// The longest of them.
inline constexpr std::size_t kMostBytes = 1024;
static_assert(sizeof(Answer) <= kMostBytes && sizeof(Order) <= kMostBytes);

/// Must have succeeded once in the process before anything that follows. Any thread.
Status initProofs();
Nonce freshNonce();
/// What goes with the rest of a hello.
Proof passOf(const Secret& secret, const Hello& hello);
/// That somebody knows the secret who has seen both nonces. `bySender`: which of the two proves it.
Proof prove(const Secret& secret, const Hello& hello, const Nonce& challenge, bool bySender);
/// In constant time.
bool sameProof(const Proof& a, const Proof& b);

/// Of the relay's local socket, known to who knows the secret.
transport::LocalName lineName(const Secret& secret, int relay);

}  // namespace tutti::net::pxn
