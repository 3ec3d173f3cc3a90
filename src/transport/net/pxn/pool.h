// Slots of the Simple protocol that all connections for messages share which a relay has for one sender on one channel:
// one segment, made by the relay, in which the sender's kernels find free slots.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/status.h"
#include "device/conn_view.h"
#include "gpu/context.h"
#include "gpu/memory.h"
#include "transport/net/lane/slot_store.h"
#include "transport/shm/region.h"
#include "transport/shm/segment.h"

namespace tutti::net::pxn {

/// At most as many as a connection would have for itself: unlike a rank's own, of which there is one set for a channel,
/// there is one for each relay.
inline constexpr std::uint32_t kPoolSlots = device::kSteps;
/// For a rank whose own set has so many.
inline std::uint32_t poolSlots(std::uint32_t ownSlots) {
  return std::min(ownSlots, kPoolSlots);
}
/// Of the segment, from which the slots begin: how many have been given back.
inline constexpr std::size_t kPoolHeadBytes = 4096;
inline std::size_t poolBytes(const net::SharedShape& shape) {
  return kPoolHeadBytes + std::size_t{shape.slots} * shape.slotBytes;
}

/// The relay's side.
class RelayPool final : public net::SlotStore {
 public:
  /// `id`: no other pool of the relay has it.
  static Result<std::shared_ptr<RelayPool>> create(std::uint64_t id, const net::SharedShape& shape, int numaNode,
                                                   std::string_view about);
  std::uint64_t id() const { return id_; }
  /// For the sender to map.
  int descriptor() const { return fd_.get(); }

 private:
  RelayPool(std::uint64_t id, const net::SharedShape& shape, shm::Segment segment)
      : SlotStore(shape, segment.memory().data() + kPoolHeadBytes,
                  reinterpret_cast<std::uint64_t*>(segment.memory().data())),
        id_(id),
        segment_(std::move(segment)),
        fd_(segment_.takeDescriptor()) {}
  std::uint64_t id_;
  shm::Segment segment_;
  Fd fd_;
};

/// Those of a relay, each for as long as a connection has it. One thread.
class RelayPools {
 public:
  /// Made where there is none, or one of another shape.
  Result<std::shared_ptr<RelayPool>> get(int sender, int channel, const net::SharedShape& shape, int numaNode);

 private:
  std::uint64_t last_ = 0;
  std::map<std::pair<int, int>, std::weak_ptr<RelayPool>> pools_;
};

/// The sender's side: the same memory, and how many of the slots its crew has taken.
class LentSlots {
 public:
  LentSlots(std::uint64_t id, const net::SharedShape& shape, std::shared_ptr<shm::Region> memory,
            gpu::DeviceBuffer taken)
      : id_(id), shape_(shape), memory_(std::move(memory)), taken_(std::move(taken)) {}
  std::uint64_t id() const { return id_; }
  /// Lets a kernel's view use them.
  void lend(device::SendConn& view) const;

 private:
  std::uint64_t id_;
  net::SharedShape shape_;
  std::shared_ptr<shm::Region> memory_;
  gpu::DeviceBuffer taken_;
};

/// Which of a relay's pools: what its answer says.
struct PoolOffer {
  int channel = 0;
  int relay = 0;
  std::uint64_t id = 0;
  net::SharedShape shape{};
};

/// Those of a communicator. Any thread.
class LentPools {
 public:
  /// Maps `segment` unless that was done for an earlier connection: who counts slots must go on counting.
  /// `deviceOwner`: see shm::Region.
  Result<std::shared_ptr<LentSlots>> get(const gpu::Device& device, const PoolOffer& offer, Fd segment,
                                         const std::shared_ptr<const void>& deviceOwner, const gpu::MemoryUse& use);

 private:
  std::mutex mutex_;
  std::map<std::pair<int, int>, std::shared_ptr<LentSlots>> pools_;  ///< by channel and relay
};

}  // namespace tutti::net::pxn
