// Slots of the Simple protocol that all connections for messages share which a rank has on one channel in one
// direction.
//
// They are taken in turn, whichever connection they are for, by the only crew of threads that sends (receives) messages
// on the channel. A receiving crew knows itself when it is done with one. A sending crew is told: connections give
// theirs back when the network has let go of them, in any order, and the crew sees how many have come back without a
// gap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/status.h"
#include "device/conn_view.h"
#include "device/direction.h"
#include "gpu/memory.h"
#include "transport/common/ranks.h"
#include "transport/net/lane/slot_place.h"
#include "transport/net/lane/slot_store.h"

namespace tutti::net {

using device::Direction;

/// The memory of them, with their counters. `device` must outlive it.
class SharedSlots final : public SlotStore {
 public:
  static Result<std::shared_ptr<SharedSlots>> create(const gpu::Device& device, const SharedShape& shape,
                                                     const gpu::MemoryUse& use);
  /// Null: in host memory.
  const gpu::DeviceBuffer* deviceSlots() const { return slots_ ? &*slots_ : nullptr; }
  /// The slots, in the host's memory or the device's.
  std::byte* slots(Viewer viewer) const;
  /// The crew's counter of the slots that it has taken; in device memory.
  std::uint64_t* taken() const { return reinterpret_cast<std::uint64_t*>(taken_.data()); }
  /// What a sender's view says of them.
  device::SendShared ofSender(Viewer viewer) const;

 private:
  static constexpr std::size_t kCounterBytes = 4096;  ///< a page, so that slots begin with one
  SharedSlots(const SharedShape& shape, gpu::PinnedBuffer pinned, gpu::DeviceBuffer taken,
              std::optional<gpu::DeviceBuffer> slots)
      : SlotStore(shape, slots ? slots->data() : pinned.host() + kCounterBytes,
                  reinterpret_cast<std::uint64_t*>(pinned.host())),
        pinned_(std::move(pinned)),
        taken_(std::move(taken)),
        slots_(std::move(slots)) {}

  std::byte* base(Viewer viewer) const { return viewer == Viewer::Kernels ? pinned_.onDevice() : pinned_.host(); }

  gpu::PinnedBuffer pinned_;
  gpu::DeviceBuffer taken_;
  std::optional<gpu::DeviceBuffer> slots_;
};

/// Those of a communicator, or of several that use them in turn. They live as long as anybody has them. Any thread.
class SharedPools {
 public:
  /// Made when nobody has them. Kernels know one ring of a channel: where there is one in host memory, it is the one,
  /// whatever `shape` says of the place. Null: there are some with slots as long, but of another shape, which this
  /// connection cannot use. `ledger`, which may be null, counts their device memory.
  Result<std::shared_ptr<SharedSlots>> get(const gpu::Device& device, int channel, device::Direction direction,
                                           const SharedShape& shape,
                                           const std::shared_ptr<gpu::MemoryLedger>& ledger = {});

 private:
  std::mutex mutex_;
  std::map<std::tuple<int, device::Direction, std::uint32_t>, std::weak_ptr<SharedSlots>> pools_;
};

}  // namespace tutti::net
