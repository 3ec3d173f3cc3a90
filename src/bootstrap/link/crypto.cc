#include "bootstrap/link/crypto.h"

#include <sodium.h>

#include <cstdint>

#include "base/log.h"

namespace tutti::bootstrap {
namespace {

const unsigned char* bytesOf(const std::byte* data) {
  return reinterpret_cast<const unsigned char*>(data);
}
unsigned char* bytesOf(std::byte* data) {
  return reinterpret_cast<unsigned char*>(data);
}

void absorb(crypto_auth_hmacsha256_state& state, const void* data, std::uint64_t size) {
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(&size), sizeof size);
  crypto_auth_hmacsha256_update(&state, static_cast<const unsigned char*>(data), size);
}

}  // namespace

static_assert(sizeof(Key) == crypto_auth_hmacsha256_KEYBYTES && sizeof(Proof) == crypto_auth_hmacsha256_BYTES);

Status initCrypto() {
  if (sodium_init() < 0) {
    return fail(ncclSystemError,
                "Bootstrap: libsodium cannot start; is there a source of random bytes (/dev/urandom)?");
  }
  return Status();
}

void fillRandom(std::span<std::byte> bytes) {
  randombytes_buf(bytes.data(), bytes.size());
}

Proof authenticate(const Key& key, std::string_view label, std::initializer_list<std::span<const std::byte>> parts) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, bytesOf(key.data()), key.size());
  absorb(state, label.data(), label.size());
  for (const auto& part : parts) absorb(state, part.data(), part.size());
  Proof proof;
  crypto_auth_hmacsha256_final(&state, bytesOf(proof.data()));
  return proof;
}

Key deriveKey(const Key& key, std::string_view label, std::initializer_list<std::span<const std::byte>> parts) {
  return authenticate(key, label, parts);
}

Key keyFromText(std::string_view label, std::string_view text) {
  return authenticate(Key{}, label, {std::as_bytes(std::span(text.data(), text.size()))});
}

bool sameProof(const Proof& a, const Proof& b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tutti::bootstrap
