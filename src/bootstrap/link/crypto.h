// Keys and proofs: the few cryptographic primitives that the bootstrap needs, from libsodium.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

#include "base/status.h"

namespace tutti::bootstrap {

using Key = std::array<std::byte, 32>;
using Nonce = std::array<std::byte, 32>;
using Proof = std::array<std::byte, 32>;

/// Must have succeeded once in the process before anything else here. Any thread. Errors: ncclSystemError.
Status initCrypto();

/// Fills with unpredictable bytes.
void fillRandom(std::span<std::byte> bytes);

/// HMAC-SHA-256 over the label and the parts, each preceded by its length, so that no two inputs run together.
Proof authenticate(const Key& key, std::string_view label, std::initializer_list<std::span<const std::byte>> parts);

/// A key for one use, from another key; different labels give unrelated keys.
Key deriveKey(const Key& key, std::string_view label, std::initializer_list<std::span<const std::byte>> parts = {});

/// Key of a text of any length.
Key keyFromText(std::string_view label, std::string_view text);

/// Compares in constant time.
bool sameProof(const Proof& a, const Proof& b);

}  // namespace tutti::bootstrap
