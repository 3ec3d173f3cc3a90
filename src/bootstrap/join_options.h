// What a rank brings along to join, and what it is told later.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "base/abort.h"
#include "base/status.h"
#include "bootstrap/settings.h"
#include "nccl.h"

namespace tutti::bootstrap {

/// A rank that died, left without a word, or announced a failure of its own.
struct PeerLost {
  int rank = -1;     ///< -1 where no single rank is to blame
  std::string host;  ///< empty where not known
  Status why;
  std::string text;       ///< a whole sentence: who, where, how it was noticed
  bool corrects = false;  ///< it is the cause of a failure of which was told, or that was announced here, before
};

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
};

}  // namespace tutti::bootstrap
