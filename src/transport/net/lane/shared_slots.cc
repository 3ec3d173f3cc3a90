#include "transport/net/lane/shared_slots.h"

#include <fmt/format.h>

#include <atomic>

#include "gpu/memory_ledger.h"

namespace tutti::net {
std::uint64_t SlotRing::giveBack(std::uint32_t number) {
  back_[number % size()] = true;
  for (; back_[given_ % size()]; ++given_) back_[given_ % size()] = false;
  return given_;
}

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

void SlotStore::giveBack(std::uint32_t number) {
  std::atomic_ref(*head_).store(ring_.giveBack(number), std::memory_order_release);
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
  return pool->shape() == shape ? pool : nullptr;
}

std::size_t sharedPoolBytes(const SharedShape& shape) {
  constexpr std::size_t kPage = 4096;
  return kPage + kTakenBytes + std::size_t{shape.slots} * shape.slotBytes;
}

}  // namespace tutti::net
