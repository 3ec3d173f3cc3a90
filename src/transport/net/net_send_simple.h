// The Simple protocol at the sending end of a connection over a network.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/status.h"
#include "device/work.h"
#include "transport/net/net_path.h"

namespace tutti::net {

/// Sends slots of the Simple protocol from where they lie, or what the kernel offers instead of them.
class SimpleSendLane {
 public:
  /// What the references name must outlive the lane.
  SimpleSendLane(NetLane& lane, const TaskSetup& setup, Tally& tally);
  /// An error with failedIn(): see there.
  Result<bool> advance();
  /// The call of the network that has failed; null: none has. The network must not be asked again then.
  const char* failedIn() const { return failedIn_; }
  /// The peer has left: it has got whatever it wanted. Errors: ncclInvalidUsage, a kernel sends more.
  Status abandon();
  bool quiet() const;
  const LaneReport& report() const { return report_; }

 private:
  struct Request {
    void* handle = nullptr;
    std::uint32_t bytes = 0;
    std::optional<std::uint32_t> place = {};  ///< the shared slot that it has
  };
  /// What the kernel has made, and what is to be remembered of it.
  Result<NetBuffer> messageOf(std::uint64_t step, Request& request) const;
  Result<bool> post();
  Result<bool> finish();
  void finishOne();

  NetLane& lane_;
  const NetPath& path_;
  const device::ConnView& view_;
  Tally& tally_;
  std::uint64_t seen_;  ///< of the tail
  std::uint64_t sent_;
  std::uint64_t done_;
  bool stalled_ = false;  ///< the network has refused step sent_ before
  const char* failedIn_ = nullptr;
  SlotStore* shared_;  ///< null: slots of its own
  std::array<Request, device::kSteps> requests_{};
  LaneReport report_{device::Protocol::Simple};
};

}  // namespace tutti::net
