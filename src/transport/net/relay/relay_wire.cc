#include "transport/net/relay/relay_wire.h"

#include <fmt/format.h>
#include <sodium.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "base/log.h"

namespace tutti::relay {
namespace {

static_assert(sizeof(Proof) == crypto_auth_hmacsha256_BYTES);

/// What a proof is about; the label tells the directions apart.
struct Claim {
  std::array<char, 16> label{};
  std::int32_t sender = -1;
  std::int32_t relay = -1;
  Nonce hello{};
  Nonce challenge{};
};
static_assert(std::has_unique_object_representations_v<Claim>);

Proof seal(const Secret& secret, std::string_view label, Claim claim) {
  std::memcpy(claim.label.data(), label.data(), label.size());
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(secret.data()), secret.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(&claim), sizeof(claim));
  Proof proof;
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(proof.data()));
  return proof;
}

}  // namespace

Status initProofs() {
  if (sodium_init() >= 0) return {};
  return fail(ncclSystemError, "PXN : libsodium cannot start; is there a source of random bytes (/dev/urandom)?");
}

Nonce freshNonce() {
  Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Proof prove(const Secret& secret, const Hello& hello, const Nonce& challenge, bool bySender) {
  return seal(secret, bySender ? "relay sender" : "relay relay",
              {.sender = hello.sender, .relay = hello.relay, .hello = hello.nonce, .challenge = challenge});
}

bool sameProof(const Proof& a, const Proof& b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

LineName lineName(const Secret& secret, int relay) {
  constexpr std::size_t kBytesShown = 16;
  const Proof digest = seal(secret, "relay name", {.relay = relay});
  std::string text = "tutti-relay-";
  for (std::size_t i = 0; i < kBytesShown; ++i) text += fmt::format("{:02x}", static_cast<unsigned>(digest[i]));
  LineName name;
  name.address.sun_family = AF_UNIX;
  // The zero in front makes it abstract.
  std::memcpy(name.address.sun_path + 1, text.data(), text.size());
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

Io sendOn(int line, std::span<const std::byte> packet, int attached) {
  iovec content{const_cast<std::byte*>(packet.data()), packet.size()};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))]{};
  if (attached >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &attached, sizeof(attached));
  }
  const ssize_t sent = ::sendmsg(line, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return Io::Done;
  // Descriptors under way are limited, too.
  return errno == EAGAIN || errno == EINTR || errno == ETOOMANYREFS ? Io::Again : Io::Gone;
}

Received receiveOn(int line, std::span<std::byte> into) {
  iovec content{into.data(), into.size()};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))]{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(sizeof(int));  // of more than one descriptor the system would close the others
  Received received;
  const ssize_t got = ::recvmsg(line, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return received;
  if (got <= 0) {
    received.state = Io::Gone;
    return received;
  }
  received.state = Io::Done;
  received.bytes = static_cast<std::size_t>(got);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    received.attached = Fd(fd);
  }
  return received;
}

}  // namespace tutti::relay
