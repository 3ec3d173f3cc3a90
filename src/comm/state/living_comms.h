// The communicators that may be looked at, for callers who cannot know.
#pragma once

#include <mutex>
#include <set>
#include <string>

struct ncclComm;

namespace tutti::comm {

/// Applications ask ncclGetLastError for a communicator that they have freed. Any thread.
class LivingComms {
 public:
  static LivingComms& instance();

  /// From now on until remove().
  void add(const ncclComm& comm);
  /// When it returns, nobody looks at `comm` any more.
  void remove(const ncclComm& comm);
  /// What it has failed of; "" where it has not, or is none.
  std::string failureOf(const ncclComm* comm) const;

 private:
  mutable std::mutex mutex_;
  std::set<const ncclComm*> comms_;
};

}  // namespace tutti::comm
