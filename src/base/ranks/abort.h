// The first error of a communicator, seen by every thread and every kernel that waits on its behalf.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tutti {

/// Holds the first error of a communicator. Every spin, poll and wait looks at raised(); kernels look at a mirrored
/// word in memory they can read. All members may be called from any thread.
class Abort {
 public:
  /// Records `why` and its text, writes the mirrors, runs the listeners once. Later calls change nothing. `lastError`
  /// becomes the process's last error before anybody can see that this was raised: who sees the error and asks for its
  /// text gets this one, not an older one. Empty: the last error stays what it is.
  void raise(Status why, std::string text, std::string_view lastError = {});
  /// Where it was raised: puts a text that names the cause better in place of the first one, and makes it the process's
  /// last error. The status stays what the application may have seen.
  void correct(std::string text);
  bool raised() const { return code_.load(std::memory_order_acquire) != ncclSuccess; }
  /// The recorded error, or success.
  Status status() const { return Status(code_.load(std::memory_order_acquire)); }
  /// What raise() was told, or correct(); empty while nothing was raised.
  std::string text() const;

  /// Also writes 1 to `*word` when raised (or now, if it already is). `word` must outlive this object or be removed
  /// with removeMirror. Used for the flag in pinned memory that kernels poll.
  void addMirror(std::uint32_t* word);
  void removeMirror(std::uint32_t* word);

  /// `listener` runs once, on the thread that raises (or now, if raised). It must not block and must not call back
  /// into addListener. Lives as long as this object.
  void addListener(std::function<void(Status)> listener);

 private:
  std::atomic<ncclResult_t> code_{ncclSuccess};
  mutable std::mutex mutex_;
  std::string text_;
  std::vector<std::uint32_t*> mirrors_;
  std::vector<std::function<void(Status)>> listeners_;
};

}  // namespace tutti
