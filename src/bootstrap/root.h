// The root: the thread behind a unique id that introduces the ranks to each other.
#pragma once

#include "base/socket/socket.h"
#include "bootstrap/link/crypto.h"
#include "bootstrap/settings.h"

namespace tutti::bootstrap {

/// What a root needs; it owns all of it.
struct RootOptions {
  Listener listener;
  Key key{};                  ///< rootKey() of the id
  bool fixedAddress = false;  ///< gives the port up as soon as everybody has come
  milliseconds timeout{0};
  milliseconds handshakeTimeout{0};
  milliseconds peerTimeout{0};
};

/// The key that ranks and root prove to each other; `commKey` counts only for ids without a secret.
struct UniqueId;
Key rootKey(const UniqueId& id, const std::string& commKey);

/// Starts a root that ends by itself: all ranks served, timeout since the first arrival, or a day without anybody.
/// It listens when this returns. Errors: ncclSystemError.
Status startRoot(RootOptions options);

}  // namespace tutti::bootstrap
