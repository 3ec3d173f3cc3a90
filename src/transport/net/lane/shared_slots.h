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
#include <vector>

#include "base/status.h"
#include "device/conn_view.h"
#include "gpu/memory.h"
#include "transport/common/ranks.h"
#include "transport/net/lane/slot_place.h"

namespace tutti::net {

using device::Direction;

/// Which of `slots` (a power of two) numbered places in a ring are out. Numbers grow without end, modulo 2^32.
class SlotRing {
 public:
  explicit SlotRing(std::uint32_t slots) : back_(slots) {}
  std::uint32_t size() const { return static_cast<std::uint32_t>(back_.size()); }
  /// Whether a sender may have taken it and has not given it back.
  bool mayBeOut(std::uint32_t number) const {
    return number - static_cast<std::uint32_t>(given_) < size() && !back_[number % size()];
  }
  /// It must be out. How many have come back before the first that has not.
  std::uint64_t giveBack(std::uint32_t number);

 private:
  std::vector<bool> back_;  ///< those behind a gap
  std::uint64_t given_ = 0;
};

struct SharedShape {
  std::uint32_t slots = 0;  ///< a power of two, at most device::kMostSharedSlots
  std::uint32_t slotBytes = 0;
  bool onDevice = false;  ///< in device memory; else in pinned host memory
  friend bool operator==(const SharedShape&, const SharedShape&) = default;
};

/// Where they lie, and which of a sender's are out. Used by connections, each of which registers memory() with its
/// network; by whoever makes the progress engine's round.
class SlotStore {
 public:
  /// `memory`: of all slots, as the network addresses it. `head`: where senders' kernels look for how many have come
  /// back, as the host addresses it. Both must outlive it.
  SlotStore(const SharedShape& shape, std::byte* memory, std::uint64_t* head)
      : shape_(shape), memory_(memory), head_(head), ring_(shape.slots) {}
  const SharedShape& shape() const { return shape_; }
  std::byte* memory() const { return memory_; }
  std::size_t bytes() const { return std::size_t{shape_.slots} * shape_.slotBytes; }
  /// Where slot `number` lies.
  std::byte* at(std::uint32_t number) const { return memory_ + std::size_t{number % shape_.slots} * shape_.slotBytes; }
  /// Senders.
  bool mayBeOut(std::uint32_t number) const { return ring_.mayBeOut(number); }
  void giveBack(std::uint32_t number);

 private:
  SharedShape shape_;
  std::byte* memory_;
  std::uint64_t* head_;
  SlotRing ring_;
};

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
  /// Made when nobody has them. Null: there are some with slots as long, but of another shape, which this connection
  /// cannot use. `ledger`, which may be null, counts their device memory.
  Result<std::shared_ptr<SharedSlots>> get(const gpu::Device& device, int channel, device::Direction direction,
                                           const SharedShape& shape,
                                           const std::shared_ptr<gpu::MemoryLedger>& ledger = {});

 private:
  std::mutex mutex_;
  std::map<std::tuple<int, device::Direction, std::uint32_t>, std::weak_ptr<SharedSlots>> pools_;
};

/// A crew's counter of the slots that it has taken, in device memory.
inline constexpr std::size_t kTakenBytes = sizeof(device::Counter);
/// What one of them takes of host and device memory together.
std::size_t sharedPoolBytes(const SharedShape& shape);

}  // namespace tutti::net
