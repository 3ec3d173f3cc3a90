// Counts who uses a plugin that is initialised once for all communicators.
#pragma once

#include <mutex>

#include "nccl_net.h"

namespace tutti::plugin {

/// Networks of versions 6 to 10 know no communicators: the first one initialises them, and when the last one has left
/// the next one does so again. Any thread.
class SharedInit {
 public:
  /// Runs `init` for the first user. Its error leaves the count as it was.
  template <class F>
  ncclResult_t enter(F&& init) {
    const std::lock_guard lock(mutex_);
    if (users_ == 0) {
      if (const ncclResult_t code = init(); code != ncclSuccess) return code;
    }
    ++users_;
    return ncclSuccess;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --users_;
  }

 private:
  std::mutex mutex_;
  int users_ = 0;  // guarded by mutex_
};

}  // namespace tutti::plugin
