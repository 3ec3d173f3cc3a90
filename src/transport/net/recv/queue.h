// Receives that a lane has posted ahead of what will come, and what the network refuses of them.
#pragma once

#include <array>
#include <cstdint>

#include "base/status.h"
#include "transport/net/lane/path.h"

namespace tutti::net {

/// Receives end in the order in which they were posted. Numbered from the lane's first step on.
class RecvQueue {
 public:
  /// What the references name must outlive the queue.
  RecvQueue(NetLane& lane, Tally& tally, std::uint64_t first)
      : lane_(lane), tally_(tally), posted_(first), done_(first) {}

  std::uint64_t posted() const { return posted_; }
  std::uint64_t done() const { return done_; }
  bool empty() const { return posted_ == done_; }

  /// Asks the network for the next receive; false: it takes none now. Once it has failed to take one, nothing more is
  /// posted, but what is under way may still come: only with nothing under way is that an error (networkFailed()).
  Result<bool> post(const plugin::NetBuffer& into);
  /// The bytes that the oldest receive has brought; -1: it goes on. An error with networkFailed(): nothing more comes.
  Result<int> oldest();
  /// The oldest receive has been dealt with.
  void pop() { ++done_; }

  /// For receives that are posted, and looked at, by MultiRecv: the same rules.
  bool mayPost() const { return !refusedForGood_ || empty(); }
  void push() { ++posted_; }
  Result<bool> refuse(Status why);
  Status failed(Status why) {
    networkFailed_ = true;
    return why;
  }
  /// Whether the network has no room for a receive that is due.
  void stall(bool now);
  bool stalled() const { return stalled_; }
  bool networkFailed() const { return networkFailed_; }

 private:
  NetLane& lane_;
  Tally& tally_;
  std::uint64_t posted_;
  std::uint64_t done_;
  bool stalled_ = false;
  bool networkFailed_ = false;
  bool refusedForGood_ = false;  ///< the network takes no further receives
  std::array<void*, kMostUnderWay> requests_{};
};

}  // namespace tutti::net
