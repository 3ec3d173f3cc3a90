#include "transport/net/lane/slot_store.h"

#include <atomic>

namespace tutti::net {

std::uint64_t SlotRing::giveBack(std::uint32_t number) {
  back_[number % size()] = true;
  for (; back_[given_ % size()]; ++given_) back_[given_ % size()] = false;
  return given_;
}

void SlotStore::giveBack(std::uint32_t number) {
  std::atomic_ref(*head_).store(ring_.giveBack(number), std::memory_order_release);
}

std::size_t sharedPoolBytes(const SharedShape& shape) {
  constexpr std::size_t kPage = 4096;
  return kPage + kTakenBytes + std::size_t{shape.slots} * shape.slotBytes;
}

}  // namespace tutti::net
