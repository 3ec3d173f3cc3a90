// Unique ids by which a communicator is to grow, as they come from the rank that made them.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/ranks/abort.h"
#include "base/status.h"
#include "nccl.h"

namespace tutti::bootstrap {

/// Between two looks of a wait at its communicator's abort.
inline constexpr std::chrono::milliseconds kLookAtAbort{100};

/// Shared with whoever waits for an invitation: the communicator may end meanwhile. Any thread.
class Invitations {
 public:
  void add(const ncclUniqueId& id);
  /// One that this rank has made itself.
  void addOurs(const ncclUniqueId& id);
  bool isOurs(const ncclUniqueId& id) const;
  /// The latest of them, unless it was used.
  std::optional<ncclUniqueId> unusedOfOurs() const;
  /// The calling rank uses that id: nobody else gets it from here. ncclInvalidArgument where it was used before.
  Status use(const ncclUniqueId& id);
  /// The oldest that nobody has used. Waits for it, and says so once at `reportAt`. Errors: ncclRemoteError at the
  /// deadline, what close() was told, the Abort's status.
  Result<ncclUniqueId> take(Deadline deadline, const Abort& abort, Deadline reportAt = Deadline::never());
  /// Nothing more will come: whoever waits gets `why`. `text` lives as long as the program.
  void close(Status why, const char* text);

 private:
  static std::string bytesOf(const ncclUniqueId& id) { return {id.internal, sizeof(id.internal)}; }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ncclUniqueId> ids_;
  std::deque<ncclUniqueId> ours_;
  std::set<std::string> used_;  ///< bytes of ids
  Status closed_;
  const char* why_ = "";
};

}  // namespace tutti::bootstrap
