// How file descriptors are asked for and handed out between processes of one user on one host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "transport/common/local_socket.h"

namespace tutti::transport {

/// 128 random bits.
using Token = std::array<std::byte, 16>;

/// Whom to ask for one descriptor, and by what right. Trivially copyable; travels in handles.
struct Ticket {
  Token server{};  ///< the socket's name
  Token item{};
  friend bool operator==(const Ticket&, const Ticket&) = default;
};

/// What the asking side sends: one message.
struct FdRequest {
  std::uint64_t magic = kMagic;
  Token item{};
  static constexpr std::uint64_t kMagic = 0x74757474692d6664;  // "tutti-fd"
};

/// The answer: one message of this; Granted comes with one descriptor.
enum class FdReply : std::uint8_t { Granted = 1, Refused = 2 };

/// Errors: ncclSystemError where the system has no random bits.
Result<Token> randomToken();

/// Of the server's socket.
inline LocalName socketName(const Token& server) {
  return localName("fd", server);
}

}  // namespace tutti::transport
