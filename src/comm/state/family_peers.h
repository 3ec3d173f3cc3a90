// Which ranks have left all communicators of a family.
#pragma once

#include <mutex>
#include <string>
#include <vector>

struct ncclComm;

namespace tutti::comm {

/// A rank that has left one of them goes on using connections with another one. Any thread, at any time: nobody who
/// asks waits for more than others who ask.
class FamilyPeers {
 public:
  /// From now on a rank that is in it has not left before it leaves that one. Its bootstrap must be there.
  void join(const ncclComm& comm);
  /// Its bootstrap is about to go. Harmless for one that has not joined.
  void forget(const ncclComm& comm);
  /// Whether the rank at that place in the family's numbering has left all in which it is, as far as is known here:
  /// those that have failed, or lost anybody, hear no goodbyes, and do not count where there is another one.
  bool hasLeft(int place) const;
  /// If that is only so because its process has ended: a sentence that says so; else "".
  std::string exitOf(int place) const;

 private:
  mutable std::mutex mutex_;
  std::vector<const ncclComm*> members_;
};

}  // namespace tutti::comm
