#include "transport/collnet/lane_set.h"

#include <utility>

#include "gpu/memory_ledger.h"

namespace tutti::collnet {
namespace {

/// What a lane has beside its slots in host memory …
struct LaneCounters {
  device::Counter sendTail;
  device::Counter sendHead;
  device::Counter recvTail;
  device::Counter recvHead;
};
/// … and in device memory.
struct LaneSteps {
  device::Counter send;
  device::Counter recv;
};

constexpr std::size_t kPage = 4096;

constexpr std::size_t wholePages(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

Result<LaneSet> LaneSet::create(const gpu::Device& device, LaneSetShape shape, LaneSlotsPlace place,
                                std::string_view about, const std::shared_ptr<gpu::MemoryLedger>& ledger) {
  const std::size_t lanes = shape.channels.size();
  const std::size_t areaBytes = std::size_t{shape.slotBytes} * lanes * device::kSteps;
  const std::size_t sendOffset = wholePages(sizeof(device::CollNetWords) + lanes * sizeof(LaneCounters));
  const std::size_t recvOffset = sendOffset + (place.sendOnDevice ? 0 : wholePages(areaBytes));
  const std::size_t hostBytes = recvOffset + (place.recvOnDevice ? 0 : wholePages(areaBytes));
  ASSIGN(gpu::PinnedBuffer pinned, gpu::PinnedBuffer::create(device, hostBytes, about));
  ASSIGN(gpu::DeviceBuffer steps,
         gpu::DeviceBuffer::create(device, lanes * sizeof(LaneSteps), {about, ledger, gpu::MemoryClass::Persistent}));
  LaneSet set(std::move(shape), std::move(pinned), std::move(steps));
  set.sendOffset_ = sendOffset;
  set.recvOffset_ = recvOffset;
  if (place.sendOnDevice) {
    ASSIGN(set.sendOnDevice_,
           gpu::DeviceBuffer::create(device, areaBytes, {about, ledger, gpu::MemoryClass::Persistent}));
  }
  if (place.recvOnDevice) {
    ASSIGN(set.recvOnDevice_,
           gpu::DeviceBuffer::create(device, areaBytes, {about, ledger, gpu::MemoryClass::Persistent}));
  }
  return set;
}

LaneSet::Area LaneSet::area(const std::optional<gpu::DeviceBuffer>& onDevice, std::size_t offset) const {
  return {onDevice ? onDevice->data() : pinned_.host() + offset, stepBytes() * device::kSteps,
          onDevice ? &*onDevice : nullptr};
}

device::CollNetConn LaneSet::conn(int lane, net::Viewer viewer) const {
  std::byte* const host = viewer == net::Viewer::Kernels ? pinned_.onDevice() : pinned_.host();
  auto* const counters = reinterpret_cast<LaneCounters*>(host + sizeof(device::CollNetWords)) + lane;
  auto* const steps = reinterpret_cast<LaneSteps*>(steps_.data()) + lane;
  return {.sendSlots = sendOnDevice_ ? sendOnDevice_->data() : host + sendOffset_,
          .recvSlots = recvOnDevice_ ? recvOnDevice_->data() : host + recvOffset_,
          .areaBytes = stepBytes(),
          .slotBytes = shape_.slotBytes,
          .lane = static_cast<std::uint16_t>(lane),
          .lanes = static_cast<std::uint16_t>(lanes()),
          .words = reinterpret_cast<device::CollNetWords*>(host),
          .sendTail = &counters->sendTail,
          .sendHead = &counters->sendHead,
          .recvTail = &counters->recvTail,
          .recvHead = &counters->recvHead,
          .sendStep = &steps->send,
          .recvStep = &steps->recv,
          .reserved = 0};
}

}  // namespace tutti::collnet
