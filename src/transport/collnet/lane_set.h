// Lanes: what the channels that share a head's connection have in memory, slots, counters and words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "device/collnet_view.h"
#include "gpu/memory.h"
#include "transport/net/lane/slot_place.h"

namespace tutti::gpu {
class MemoryLedger;
}

namespace tutti::collnet {

/// The lanes of one algorithm. Its kernels use all of them, and work by work none but those of one set.
struct LaneSetShape {
  std::string name;             ///< of the algorithm: "CollNetDirect"
  std::vector<int> channels;    ///< of each lane
  std::uint32_t slotBytes = 0;  ///< most bytes of a lane's share of a step; a multiple of 16
};

/// Where the slots lie.
struct LaneSlotsPlace {
  bool sendOnDevice = false;  ///< in device memory; else in pinned host memory
  bool recvOnDevice = false;
};

/// One allocation of pinned host memory, private counters in device memory, and slots there where they are asked for.
/// All counters are zero. `device` must outlive it.
class LaneSet {
 public:
  /// `about` names the purpose in errors; `ledger`, which may be null, counts the device memory. Errors: no memory.
  static Result<LaneSet> create(const gpu::Device& device, LaneSetShape shape, LaneSlotsPlace place,
                                std::string_view about, const std::shared_ptr<gpu::MemoryLedger>& ledger);

  const LaneSetShape& shape() const { return shape_; }
  int lanes() const { return static_cast<int>(shape_.channels.size()); }
  /// A lane as kernels address it, or as host threads and the network do.
  device::CollNetConn conn(int lane, net::Viewer viewer) const;

  /// Slots of all steps and lanes in one direction, as the network addresses them.
  struct Area {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    const gpu::DeviceBuffer* onDevice = nullptr;  ///< null: in host memory
  };
  Area sendArea() const { return area(sendOnDevice_, sendOffset_); }
  Area recvArea() const { return area(recvOnDevice_, recvOffset_); }

 private:
  LaneSet(LaneSetShape shape, gpu::PinnedBuffer pinned, gpu::DeviceBuffer steps)
      : shape_(std::move(shape)), pinned_(std::move(pinned)), steps_(std::move(steps)) {}
  std::uint64_t stepBytes() const { return std::uint64_t{shape_.slotBytes} * shape_.channels.size(); }
  Area area(const std::optional<gpu::DeviceBuffer>& onDevice, std::size_t offset) const;

  LaneSetShape shape_;
  gpu::PinnedBuffer pinned_;
  gpu::DeviceBuffer steps_;  ///< of each lane, sendStep and recvStep
  std::optional<gpu::DeviceBuffer> sendOnDevice_;
  std::optional<gpu::DeviceBuffer> recvOnDevice_;
  std::size_t sendOffset_ = 0;  ///< in pinned_, unless they lie on the device
  std::size_t recvOffset_ = 0;
};

}  // namespace tutti::collnet
