// What a rank brings along to join, and what it is told later.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "base/ranks/abort.h"
#include "bootstrap/loop/peer_news.h"
#include "bootstrap/settings.h"
#include "nccl.h"

namespace tutti::bootstrap {

struct JoinOptions {
  std::span<const ncclUniqueId> ids;  ///< one per root, same list on all ranks
  int rank = 0;
  int nRanks = 1;
  int device = -1;                  ///< CUDA device of this rank, for its own words when it fails; -1: none
  int version = NCCL_VERSION_CODE;  ///< of the library; ranks of different versions refuse each other
  BootstrapSettings settings;
  /// Raised: every wait of this rank returns its status. May be null; must outlive the Bootstrap.
  Abort* abort = nullptr;
  /// Called on a thread of the bootstrap when the first peer is lost (also while join() runs), and again where the
  /// cause comes to be known better (PeerLost::corrects), a few times at most. Must not block and must not destroy the
  /// Bootstrap. May be empty.
  std::function<void(const PeerLost&)> onPeerLost;
  /// Called with what another rank said by announceState(), on a thread of the bootstrap. Must not block and must not
  /// destroy the Bootstrap. May be empty: then it is only passed on.
  std::function<void(int rank, std::span<const std::byte>)> onState;
  /// Called when takeDepartures() has something new, on a thread of the bootstrap. Must not block and must not destroy
  /// the Bootstrap. May be empty.
  std::function<void()> onDeparture;
};

}  // namespace tutti::bootstrap
