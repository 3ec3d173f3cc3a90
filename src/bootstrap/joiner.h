// The steps from a unique id to a place in the tree.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/ranks/abort.h"
#include "base/status.h"
#include "bootstrap/join_options.h"
#include "bootstrap/link/crypto.h"
#include "bootstrap/link/wire.h"
#include "bootstrap/loop/tree.h"

namespace tutti {
class Address;
class Listener;
}  // namespace tutti

namespace tutti::bootstrap {

class ConnectionLoop;
class IdUse;

/// A rank that is connected to its parent (its children connect to it in their own time).
struct Joined {
  int rank = 0;
  int nRanks = 1;
  TreePlace place;
  RankEntry self;
  Key key{};  ///< of this communicator: what its ranks prove to each other
  std::uint64_t commHash = 0;
  milliseconds timeout{0};
  milliseconds handshakeTimeout{0};
  milliseconds peerTimeout{0};
  const Abort* abort = nullptr;
  std::shared_ptr<ConnectionLoop> loop;
  std::shared_ptr<IdUse> use;  ///< ends when everybody has joined, or with failUse(); null: no id was used
};

/// Everything up to the connected parent. Errors: as Bootstrap::join.
Result<Joined> joinRanks(const JoinOptions& options);

/// Its first step: the thread that serves `listener`, for a place that `joined` knows. `rank0IsRoot`: as
/// ConnectionLoop::Options.
Status startLoop(Joined& joined, const JoinOptions& options, Listener listener, bool rank0IsRoot);
/// Its last step: connects to the parent in the tree, who listens at `address`; none at the top.
Status connectParent(const Joined& joined, const Address& address, Deadline deadline);
/// What a communicator with that key is called in log lines.
std::uint64_t nameOfComm(const Key& key);

/// Tells the roots in this process that the join has failed after all.
void failUse(const Joined& joined, Status why);

/// Opens the connection on which this rank sends to `peer`.
Status connectPeer(const Joined& joined, int peer, Deadline deadline);

}  // namespace tutti::bootstrap
