// How often neighbours tell each other that they live.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace tutti::bootstrap {

/// Signs of life that neighbours give each other within the silence that counts as death.
inline constexpr int kSignsOfLife = 4;

/// How often a rank gives one to neighbours of whom the least patient counts a silence of `leastPatience` as death: its
/// own patience, until they say theirs.
inline milliseconds signInterval(milliseconds leastPatience) {
  return std::min(leastPatience / kSignsOfLife, milliseconds(500));
}

/// As signs of life carry it, in their tag.
inline int patienceTag(milliseconds peerTimeout) {
  return static_cast<int>(std::clamp<std::int64_t>(peerTimeout.count(), 1, 1 << 30));
}
/// What is left of `patience` when a sign with `tag` has come. Anything else than a patience is ignored.
inline milliseconds leastPatience(milliseconds patience, int tag) {
  constexpr int kLeast = 100;  // of TUTTI_PEER_TIMEOUT_MS: nobody has this process send more often than every 25 ms
  return tag >= kLeast ? std::min(patience, milliseconds(tag)) : patience;
}

}  // namespace tutti::bootstrap
