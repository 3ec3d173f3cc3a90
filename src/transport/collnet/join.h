// The one call of such a network that waits for peers, made so that nobody has to wait for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ranks/abort.h"
#include "base/status.h"
#include "plugin/network/collnet.h"

namespace tutti::collnet {

/// What connect() of a network is given.
struct JoinRequest {
  std::shared_ptr<plugin::CollNet> network;
  std::vector<plugin::NetHandle> handles;  ///< of all nodes, in their order
  int node = 0;                            ///< this one's place there
  void* listener = nullptr;
};

struct JoinOutcome {
  enum class End : std::uint8_t {
    Returned,  ///< see `status`, and `connection`, which may be null
    TooLate,   ///< the deadline has passed …
    Aborted,   ///< … or the abort was raised
  };
  End end = End::Returned;
  Status status;  ///< of the call; or that no thread could be started
  void* connection = nullptr;
  std::string said;  ///< the network's words, with an error
};

/// Calls connect() on a thread of its own and waits for it, up to the deadline and as long as `abort`, which may be
/// null, is not raised. Networks have no way to be called back. Where it has not returned by then the thread goes on
/// alone: it keeps the network, and closes connection and listener if it ever returns. Else the listener is the
/// caller's again. Errors of the network are lines at INFO.
JoinOutcome join(JoinRequest request, Deadline deadline, const Abort* abort);

}  // namespace tutti::collnet
