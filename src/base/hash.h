// One 64-bit hash for identities that travel between processes; not for secrets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tutti {

inline constexpr std::uint64_t kHashSeed = 0xcbf29ce484222325;

/// FNV-1a with a final mix. Equal bytes give equal values in every process and build; pass a previous value as `seed`
/// to hash several parts.
std::uint64_t hashBytes(std::span<const std::byte> bytes, std::uint64_t seed = kHashSeed);

/// The same of one word, in a few nanoseconds: its bits depend on all of those of `value` and `seed` (the end of
/// MurmurHash3, which is in the public domain). Not hashBytes()'s value.
constexpr std::uint64_t hashWord(std::uint64_t value, std::uint64_t seed) {
  std::uint64_t hash = (seed + 0x9e3779b97f4a7c15) ^ value;
  hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccd;
  hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53;
  return hash ^ hash >> 33;
}

inline std::uint64_t hashText(std::string_view text, std::uint64_t seed = kHashSeed) {
  return hashBytes(std::as_bytes(std::span(text.data(), text.size())), seed);
}

}  // namespace tutti
