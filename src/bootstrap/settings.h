// What the user may choose about the bootstrap, as plain values.
#pragma once

#include <string>

#include "base/clock.h"

namespace tutti::bootstrap {

/// Filled from the parameters by whoever creates ids and communicators; see docs/bootstrap.md and docs/env.md.
struct BootstrapSettings {
  std::string interfaceNames;             ///< NCCL_SOCKET_IFNAME; empty: automatic
  std::string family;                     ///< NCCL_SOCKET_FAMILY; empty: any
  std::string commId;                     ///< NCCL_COMM_ID; empty: every id gets a listener of its own
  std::string commKey;                    ///< TUTTI_COMM_KEY: shared key of ids made from NCCL_COMM_ID
  milliseconds timeout{300'000};          ///< TUTTI_BOOTSTRAP_TIMEOUT_SEC: bound of joining and of every later wait
  milliseconds reportAfter{0};            ///< a root names the ranks that are missing so late; 0: never
  milliseconds peerTimeout{5'000};        ///< TUTTI_PEER_TIMEOUT_MS: silence of a peer that counts as death
  milliseconds handshakeTimeout{10'000};  ///< how long a client may take to prove that it belongs to the job
};

}  // namespace tutti::bootstrap
