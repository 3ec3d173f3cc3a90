// Whom a call waits for that cannot go on before others have called theirs.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "comm/connect/link_types.h"

namespace tutti::comm {

/// Links of the call under way that their peers have not asked for yet; empty while no call waits. Any thread.
class AwaitedPeers {
 public:
  void set(std::vector<LinkRequest> links) {
    const std::lock_guard lock(mutex_);
    links_ = std::move(links);
  }
  std::vector<LinkRequest> all() const {
    const std::lock_guard lock(mutex_);
    return links_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<LinkRequest> links_;
};

}  // namespace tutti::comm
