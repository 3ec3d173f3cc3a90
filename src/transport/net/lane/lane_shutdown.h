// How the network connection of a lane ends: by a failure, or because the peer has left in peace.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "transport/net/lane/path.h"

namespace tutti::net {

/// Requests may be under way when a peer leaves that has got all it wanted; they end in whatever way the network says
/// so. A peer's farewell comes another way, perhaps a little later than the end of its connection. Used by one thread.
class LaneShutdown {
 public:
  /// `lane` may be null. Where several tasks share its connection, what one of them begins has begun for all.
  explicit LaneShutdown(const NetLane* lane = nullptr) : shared_(lane == nullptr ? nullptr : lane->failure) {}
  /// A call of the network has failed, and has said why in the log. The network is not asked again.
  void begin(Status why, std::string_view call);
  bool begun();
  /// The peer has left, and its connection with it: nothing was lost.
  bool closed() const { return closed_; }
  /// After begin(): closed(), which may become true. Errors: of the call, named by failNet(), if the peer has not left
  /// within the setup's grace.
  Result<bool> settle(const TaskSetup& setup);

 private:
  void note(const FailedCall& failure);

  std::optional<FailedCall>* shared_;
  std::optional<FailedCall> failure_;
  bool closed_ = false;
  SteadyClock::time_point since_{};
};

}  // namespace tutti::net
