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

inline std::uint64_t hashText(std::string_view text, std::uint64_t seed = kHashSeed) {
  return hashBytes(std::as_bytes(std::span(text.data(), text.size())), seed);
}

}  // namespace tutti
