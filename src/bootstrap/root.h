// The root: the thread behind a unique id that introduces the ranks to each other.
#pragma once

#include <memory>

#include "base/socket/socket.h"
#include "bootstrap/absence_report.h"
#include "bootstrap/link/crypto.h"
#include "bootstrap/settings.h"

namespace tutti::bootstrap {

/// A root that nobody of its process needs stays so long for those who come late to a failure.
inline constexpr milliseconds kLateness{5000};
/// A root whose process ends waits so long for those who have connected and not said yet who they are.
inline constexpr milliseconds kParting{100};
/// So long without descriptors, and a root gives up: those who are there wait for ranks that it cannot let in.
inline constexpr milliseconds kStarvation{3000};

/// What a root needs; it owns all of it.
struct RootOptions {
  Listener listener;
  Key key{};                  ///< rootKey() of the id (comm_key.h)
  bool fixedAddress = false;  ///< gives the port up as soon as everybody has come
  milliseconds timeout{0};
  milliseconds handshakeTimeout{0};
  milliseconds peerTimeout{0};
  AbsenceReport report = {};
};

class RunningRoot;

/// Starts a root that ends by itself: all ranks served, timeout since the first arrival, or a day without anybody. It
/// ends earlier if its process needs it no more (id_use.h). It listens when this returns. Errors: ncclSystemError.
Result<std::shared_ptr<RunningRoot>> startRoot(RootOptions options);

}  // namespace tutti::bootstrap
