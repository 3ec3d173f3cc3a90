// The channels of a communicator: who owns the connections, and the tables through which kernels see them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/abort.h"
#include "base/clock.h"
#include "base/status.h"
#include "comm/connect.h"
#include "device/work.h"
#include "gpu/memory.h"

namespace tutti {

/// What the tables of a communicator say before anything is connected.
struct ChannelPlan {
  int rank = 0;
  int nRanks = 1;
  int nChannels = 1;
  std::vector<int> ring;                      ///< ring order, the same on all channels
  const std::uint32_t* abortWord = nullptr;   ///< as kernels address it
};

/// Owns all endpoints of one rank and the device memory of CommView, ChannelViews and ConnViews. Used by one thread at
/// a time; kernels read the tables meanwhile, but only entries of links that were added before their launch.
class ChannelSet {
 public:
  /// The device must outlive the result.
  static Result<std::unique_ptr<ChannelSet>> create(const Device& device, const ChannelPlan& plan);

  const device::CommView* view() const;
  int channels() const { return plan_.nChannels; }
  int ringNext() const { return neighbour(1); }
  int ringPrev() const { return neighbour(plan_.nRanks - 1); }

  bool connected(int peer, device::ConnKind kind, Direction direction) const {
    return !links_[slotOf(peer, kind, direction)].endpoints.empty();
  }
  /// Takes the endpoints over and publishes them to kernels launched from now on.
  Status add(OpenLink link);

  /// Waits until peers have consumed everything this rank's kernels sent: then nobody writes to our memory any more,
  /// and it may be freed without asking anybody. Leaves when `abort` is raised or at the deadline.
  Status awaitConsumed(const Abort& abort, Deadline deadline) const;

 private:
  ChannelSet(const Device& device, ChannelPlan plan, DeviceBuffer table)
      : device_(&device), plan_(std::move(plan)), links_(static_cast<std::size_t>(plan_.nRanks) * device::kConnKinds * 2),
        table_(std::move(table)) {}
  int neighbour(int distance) const;
  static std::size_t slotOf(int peer, device::ConnKind kind, Direction direction) {
    const std::size_t link = static_cast<std::size_t>(peer) * device::kConnKinds + static_cast<std::size_t>(kind);
    return link * 2 + (direction == Direction::Send ? 0 : 1);
  }
  Status uploadSkeleton() const;
  Result<bool> allConsumed() const;

  const Device* device_;
  ChannelPlan plan_;
  std::vector<OpenLink> links_;   ///< by slotOf(); without endpoints: not connected
  DeviceBuffer table_;
};

/// Collective: opens the connections to both neighbours in the ring.
Status connectRing(const ConnectContext& context, ChannelSet& channels);

}  // namespace tutti
