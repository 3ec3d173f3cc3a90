// Messages that a lane has given to the network, which may finish them later.
#pragma once

#include <array>
#include <cstdint>

#include "base/status.h"
#include "transport/net/lane/path.h"

namespace tutti::net {

/// Numbered from the lane's first step on. Lanes that share a NetLane have kMostUnderWay messages there together.
class SendQueue {
 public:
  /// What the references name must outlive the queue.
  SendQueue(NetLane& lane, Tally& tally, std::uint64_t first)
      : lane_(lane), tally_(tally), sent_(first), done_(first) {}

  std::uint64_t sent() const { return sent_; }
  std::uint64_t done() const { return done_; }
  bool empty() const { return sent_ == done_; }
  /// The network has refused message sent() before.
  bool stalled() const { return stalled_; }
  /// The call of the network that has failed; null: none has. The network must not be asked again then.
  const char* failedIn() const { return failedIn_; }

  /// Hands the next message to the network; false: it does not take it now. An error with failedIn().
  Result<bool> post(const plugin::NetBuffer& message);
  /// Whether the network has finished the oldest message: then pop() has to follow. An error with failedIn().
  Result<bool> oldestEnded();
  void pop();
  /// Counts the next message as given, although nobody is there to take it.
  void skip();

 private:
  Result<bool> stall();

  NetLane& lane_;
  Tally& tally_;
  std::uint64_t sent_;
  std::uint64_t done_;
  bool stalled_ = false;
  const char* failedIn_ = nullptr;
  std::array<void*, kMostUnderWay> requests_{};
};

}  // namespace tutti::net
