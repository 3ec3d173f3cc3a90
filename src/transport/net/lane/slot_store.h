// Slots that several connections share, wherever their memory comes from, and which of them are out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/conn_view.h"

namespace tutti::net {

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

/// A crew's counter of the slots that it has taken, in device memory.
inline constexpr std::size_t kTakenBytes = sizeof(device::Counter);
/// What one of them takes of host and device memory together.
std::size_t sharedPoolBytes(const SharedShape& shape);

}  // namespace tutti::net
