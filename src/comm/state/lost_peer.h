// A peer that is gone is an error only for a rank that needs it.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/ranks/abort.h"
#include "base/status.h"

namespace tutti::comm {

/// The failure of a peer of which a communicator has heard. It becomes the communicator's own when this rank waits for
/// its peers, or is about to: a call waits to be connected, an init or end goes on, the watch sees that kernels run, an
/// operation is called. An idle communicator stays as it is. Any thread.
class LostPeer {
 public:
  /// `abort` must outlive it.
  explicit LostPeer(Abort& abort) : abort_(abort) {}
  LostPeer(const LostPeer&) = delete;

  /// `text` says who it was; of several failures the first one counts, unless the next `corrects` it.
  void hear(Status why, std::string text, bool corrects);
  /// Takes no lock.
  bool heard() const { return heard_.load(); }
  /// What was heard, whoever needs its peers; success: nothing.
  Status loss() const;
  /// The caller needs its peers: the communicator's state, which is an error if one is lost. The text is the thread's
  /// last error then.
  Status need();

  /// The same from now until endWait(): what is heard meanwhile is an error at once. Counted; one is counted from the
  /// beginning, for the init.
  Status beginWait();
  void endWait();

 private:
  struct Loss {
    Status why;
    std::string text;
  };
  Status raiseLocked();

  Abort& abort_;
  mutable std::mutex mutex_;
  std::optional<Loss> loss_;
  std::atomic<bool> heard_{false};  ///< there is one
  int waits_ = 1;
};

}  // namespace tutti::comm
