#include "transport/net/pxn/pool.h"

#include <fmt/format.h>

#include "gpu/memory_ledger.h"

namespace tutti::net::pxn {

Result<std::shared_ptr<RelayPool>> RelayPool::create(std::uint64_t id, const net::SharedShape& shape, int numaNode,
                                                     std::string_view about) {
  ASSIGN(shm::Segment segment, shm::Segment::create(poolBytes(shape), numaNode, about));
  return std::shared_ptr<RelayPool>(new RelayPool(id, shape, std::move(segment)));
}

Result<std::shared_ptr<RelayPool>> RelayPools::get(int sender, int channel, const net::SharedShape& shape,
                                                   int numaNode) {
  std::weak_ptr<RelayPool>& known = pools_[{sender, channel}];
  std::shared_ptr<RelayPool> pool = known.lock();
  if (pool != nullptr && pool->shape() == shape) return pool;
  ASSIGN(pool, RelayPool::create(++last_, shape, numaNode,
                                 fmt::format("slots that messages of rank {} share on channel {}", sender, channel)));
  known = pool;
  return pool;
}

void LentSlots::lend(device::SendConn& view) const {
  view.slots[static_cast<std::size_t>(device::Protocol::Simple)] = memory_->onDevice() + kPoolHeadBytes;
  view.shared = {.taken = reinterpret_cast<std::uint64_t*>(taken_.data()),
                 .givenBack = reinterpret_cast<const std::uint64_t*>(memory_->onDevice()),
                 .count = shape_.slots,
                 .reserved = 0};
}

Result<std::shared_ptr<LentSlots>> LentPools::get(const gpu::Device& device, const PoolOffer& offer, Fd segment,
                                                  const std::shared_ptr<const void>& deviceOwner,
                                                  const gpu::MemoryUse& use) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<LentSlots>& known = pools_[{offer.channel, offer.relay}];
  if (known != nullptr && known->id() == offer.id) return known;
  ASSIGN(shm::Segment adopted, shm::Segment::adopt(std::move(segment), poolBytes(offer.shape), use.about));
  ASSIGN(std::shared_ptr<shm::Region> memory, shm::Region::create(device, std::move(adopted), use.about, deviceOwner));
  ASSIGN(gpu::DeviceBuffer taken, gpu::DeviceBuffer::create(device, net::kTakenBytes, use));
  known = std::make_shared<LentSlots>(offer.id, offer.shape, std::move(memory), std::move(taken));
  return known;
}

}  // namespace tutti::net::pxn
