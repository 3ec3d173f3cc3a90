// Whom a call waits for that cannot go on before others have called theirs.
#pragma once

#include <mutex>
#include <vector>

namespace tutti::comm {

struct LinkRequest;

/// Links of the call under way that their peers have not asked for yet; empty while no call waits. Any thread.
class AwaitedPeers {
 public:
  AwaitedPeers();
  AwaitedPeers(const AwaitedPeers&) = delete;
  ~AwaitedPeers();

  void set(std::vector<LinkRequest> links);
  std::vector<LinkRequest> all() const;

 private:
  mutable std::mutex mutex_;
  std::vector<LinkRequest> links_;
};

}  // namespace tutti::comm
