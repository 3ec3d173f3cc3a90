#include "transport/net/tcp/wire.h"

#include <sodium.h>

#include <cstring>
#include <string_view>

#include "base/log.h"

namespace tutti::net::tcp {

namespace {

static_assert(sizeof(SocketProof) == crypto_auth_hmacsha256_BYTES);

/// What a proof is about. All of it is covered, the label tells the directions apart.
struct Claim {
  std::array<char, 16> label{};
  std::uint64_t commId = 0;
  SocketNonce listener{};
  SocketNonce connector{};
  std::uint32_t stream = 0;
  std::uint32_t streams = 0;
};
static_assert(std::has_unique_object_representations_v<Claim>);

Claim claimOf(std::string_view label, const SocketIdentity& identity, const SocketNonce& listener,
              const SocketNonce& connector) {
  Claim claim{.commId = identity.commId, .listener = listener, .connector = connector};
  std::memcpy(claim.label.data(), label.data(), label.size());
  return claim;
}

SocketProof prove(const SocketIdentity& identity, const Claim& claim) {
  const auto* key = reinterpret_cast<const unsigned char*>(identity.secret.data());
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, key, identity.secret.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(&claim), sizeof(claim));
  SocketProof proof;
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(proof.data()));
  return proof;
}

}  // namespace

Status initSocketProofs() {
  if (sodium_init() >= 0) return {};
  return fail(ncclSystemError,
              "NET/Socket : libsodium cannot start; is there a source of random bytes (/dev/urandom)?");
}

SocketNonce freshSocketNonce() {
  SocketNonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

SocketHello makeHello(const SocketIdentity& identity, const SocketNonce& listener, const SocketNonce& connector,
                      std::uint32_t stream, std::uint32_t streams) {
  Claim claim = claimOf("socket hello", identity, listener, connector);
  claim.stream = stream;
  claim.streams = streams;
  return {
      .magic = kSocketMagic, .stream = stream, .streams = streams, .nonce = connector, .proof = prove(identity, claim)};
}

SocketAnswer makeAnswer(const SocketIdentity& identity, const SocketNonce& listener, const SocketNonce& connector) {
  return {.magic = kSocketMagic, .proof = prove(identity, claimOf("socket answer", identity, listener, connector))};
}

bool checkHello(const SocketIdentity& identity, const SocketNonce& listener, const SocketHello& hello) {
  const SocketHello right = makeHello(identity, listener, hello.nonce, hello.stream, hello.streams);
  return hello.magic == kSocketMagic && sodium_memcmp(hello.proof.data(), right.proof.data(), right.proof.size()) == 0;
}

bool checkAnswer(const SocketIdentity& identity, const SocketNonce& listener, const SocketNonce& connector,
                 const SocketAnswer& answer) {
  const SocketAnswer right = makeAnswer(identity, listener, connector);
  return answer.magic == kSocketMagic &&
         sodium_memcmp(answer.proof.data(), right.proof.data(), right.proof.size()) == 0;
}

}  // namespace tutti::net::tcp
