#include "transport/net/pxn/wire.h"

#include <sodium.h>

#include <cstring>
#include <span>
#include <string_view>

#include "base/log.h"

namespace tutti::net::pxn {
namespace {

static_assert(sizeof(Proof) == crypto_auth_hmacsha256_BYTES);
static_assert(sizeof(Secret) == crypto_auth_hmacsha256_KEYBYTES);

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
  Proof proof;
  crypto_auth_hmacsha256(reinterpret_cast<unsigned char*>(proof.data()), reinterpret_cast<const unsigned char*>(&claim),
                         sizeof(claim), reinterpret_cast<const unsigned char*>(secret.data()));
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

Proof passOf(const Secret& secret, const Hello& hello) {
  return seal(secret, "relay pass", {.sender = hello.sender, .relay = hello.relay, .hello = hello.nonce});
}

Proof prove(const Secret& secret, const Hello& hello, const Nonce& challenge, bool bySender) {
  return seal(secret, bySender ? "relay sender" : "relay relay",
              {.sender = hello.sender, .relay = hello.relay, .hello = hello.nonce, .challenge = challenge});
}

bool sameProof(const Proof& a, const Proof& b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

transport::LocalName lineName(const Secret& secret, int relay) {
  const Proof digest = seal(secret, "relay name", {.relay = relay});
  return transport::localName("relay", std::span(digest).first<transport::kNameKeyBytes>());
}

}  // namespace tutti::net::pxn
