// What the user may choose about the bootstrap, as plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

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

/// Filled from the parameters by whoever creates ids and communicators; see docs/bootstrap.md and docs/env.md.
struct BootstrapSettings {
  std::string interfaceNames;             ///< NCCL_SOCKET_IFNAME; empty: automatic
  std::string family;                     ///< NCCL_SOCKET_FAMILY; empty: any
  std::string commId;                     ///< NCCL_COMM_ID; empty: every id gets a listener of its own
  std::string commKey;                    ///< TUTTI_COMM_KEY: shared key of ids made from NCCL_COMM_ID
  milliseconds timeout{300'000};          ///< TUTTI_BOOTSTRAP_TIMEOUT_SEC: bound of joining and of every later wait
  milliseconds peerTimeout{5'000};        ///< TUTTI_PEER_TIMEOUT_MS: silence of a peer that counts as death
  milliseconds handshakeTimeout{10'000};  ///< how long a client may take to prove that it belongs to the job
};

}  // namespace tutti::bootstrap
