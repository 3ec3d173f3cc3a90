// The root: the thread behind a unique id that introduces the ranks to each other.
#pragma once

#include <memory>

#include "base/socket/socket.h"
#include "bootstrap/link/crypto.h"
#include "bootstrap/settings.h"

namespace tutti::bootstrap {

/// What a root needs; it owns all of it.
struct RootOptions {
  Listener listener;
  Key key{};                  ///< rootKey() of the id (comm_key.h)
  bool fixedAddress = false;  ///< gives the port up as soon as everybody has come
  milliseconds timeout{0};
  milliseconds handshakeTimeout{0};
  milliseconds peerTimeout{0};
};

class RunningRoot;

/// Starts a root that ends by itself: all ranks served, timeout since the first arrival, or a day without anybody. It
/// ends earlier if its process needs it no more (id_use.h). It listens when this returns. Errors: ncclSystemError.
Result<std::shared_ptr<RunningRoot>> startRoot(RootOptions options);

}  // namespace tutti::bootstrap
