#include "transport/net/lane/shared_slots.h"

#include <fmt/format.h>

#include "gpu/memory_ledger.h"

namespace tutti::net {

Result<std::shared_ptr<SharedSlots>> SharedSlots::create(const gpu::Device& device, const SharedShape& shape,
                                                         const gpu::MemoryUse& use) {
  const std::size_t bytes = std::size_t{shape.slots} * shape.slotBytes;
  ASSIGN(gpu::PinnedBuffer pinned,
         gpu::PinnedBuffer::create(device, kCounterBytes + (shape.onDevice ? 0 : bytes), use.about));
  ASSIGN(gpu::DeviceBuffer taken, gpu::DeviceBuffer::create(device, kTakenBytes, use));
  std::optional<gpu::DeviceBuffer> slots;
  if (shape.onDevice) {
    ASSIGN(slots, gpu::DeviceBuffer::create(device, bytes, use));
  }
  return std::shared_ptr<SharedSlots>(new SharedSlots(shape, std::move(pinned), std::move(taken), std::move(slots)));
}

std::byte* SharedSlots::slots(Viewer viewer) const {
  return slots_ ? slots_->data() : base(viewer) + kCounterBytes;
}

device::SendShared SharedSlots::ofSender(Viewer viewer) const {
  return {.taken = taken(),
          .givenBack = reinterpret_cast<const std::uint64_t*>(base(viewer)),
          .count = shape().slots,
          .reserved = 0};
}

Result<std::shared_ptr<SharedSlots>> SharedPools::get(const gpu::Device& device, int channel,
                                                      device::Direction direction, const SharedShape& shape,
                                                      const std::shared_ptr<gpu::MemoryLedger>& ledger) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<SharedSlots>& known = pools_[{channel, direction, shape.slotBytes}];
  std::shared_ptr<SharedSlots> pool = known.lock();
  if (pool == nullptr) {
    const char* const what = direction == device::Direction::Send ? "sends" : "receives";
    const std::string about = fmt::format("slots that {} of messages share on channel {}", what, channel);
    ASSIGN(pool, SharedSlots::create(device, shape, {about, ledger}));
    known = pool;
  }
  SharedShape usable = shape;
  usable.onDevice = shape.onDevice && pool->shape().onDevice;
  return pool->shape() == usable ? pool : nullptr;
}

}  // namespace tutti::net
