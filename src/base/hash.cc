#include "base/hash.h"

namespace tutti {

std::uint64_t hashBytes(std::span<const std::byte> bytes, std::uint64_t seed) {
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::uint64_t hash = seed;
  for (const std::byte b : bytes) hash = (hash ^ static_cast<std::uint64_t>(b)) * kPrime;
  // FNV leaves the high bits of short texts weak; two multiply-shift rounds spread them.
  hash = (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9;
  return hash ^ (hash >> 32);
}

}  // namespace tutti
