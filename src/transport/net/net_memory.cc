#include "transport/net/net_memory.h"

#include <utility>

#include "transport/net/net_receiver.h"
#include "transport/net/net_sender.h"

namespace tutti::net {
namespace {

constexpr std::size_t kCountersBytes = device::kProtocols * device::kCounterStride * sizeof(std::uint64_t);
constexpr std::size_t kLine = device::kCounterStride * sizeof(std::uint64_t);
constexpr std::size_t kPage = 4096;
constexpr auto kSimple = static_cast<std::size_t>(device::Protocol::Simple);

constexpr std::size_t roundedUp(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

EndLayout endLayout(const device::SlotBytes& slotBytes, Side side, bool slotsElsewhere) {
  EndLayout layout;
  layout.tail = 0;
  layout.head = layout.tail + kCountersBytes;
  layout.sizes = layout.head + kCountersBytes;
  layout.pullFrom = layout.sizes + device::kSizesWords * sizeof(std::uint64_t);
  layout.probe = layout.pullFrom + kLine;
  layout.messages = layout.probe + 2 * kProbeBytes;
  std::size_t end =
      layout.messages + (side == Side::Sender ? senderMessageBytes(slotBytes) : receiverMessageBytes(slotBytes));
  for (std::size_t p = 0; p < slotBytes.size(); ++p) {
    if (slotBytes[p] == 0 || (p == kSimple && slotsElsewhere)) continue;
    layout.slots[p] = roundedUp(end, kPage);
    end = layout.slots[p] + std::size_t{slotBytes[p]} * device::kSteps;
  }
  layout.bytes = end;
  return layout;
}

Result<EndMemory> EndMemory::create(const Device& device, const NetPath& path, bool slotsOnDevice,
                                    const SharedSlots* shared) {
  const std::string about = path.text();
  const device::SlotBytes& slotBytes = path.link.slotBytes;
  const EndLayout layout = endLayout(slotBytes, path.side, slotsOnDevice || shared != nullptr);
  ASSIGN(PinnedBuffer pinned, PinnedBuffer::create(device, layout.bytes, about));
  ASSIGN(DeviceBuffer steps, DeviceBuffer::create(device, kCountersBytes, about));
  EndMemory memory(path, layout, std::move(pinned), std::move(steps));
  memory.shared_ = shared;
  if (slotsOnDevice && shared == nullptr && slotBytes[kSimple] != 0) {
    ASSIGN(DeviceBuffer slots, DeviceBuffer::create(device, std::size_t{slotBytes[kSimple]} * device::kSteps, about));
    memory.slots_.emplace(std::move(slots));
  }
  return memory;
}

device::ConnView EndMemory::viewAt(std::byte* base, bool forKernels) const {
  const auto words = [&](std::size_t offset) { return reinterpret_cast<std::uint64_t*>(base + offset); };
  device::ConnView view{};
  for (std::size_t p = 0; p < slotBytes_.size(); ++p) {
    view.slotBytes[p] = slotBytes_[p];
    if (slotBytes_[p] != 0) view.slots[p] = base + layout_.slots[p];
  }
  if (slots_) view.slots[kSimple] = slots_->data();
  view.tail = words(layout_.tail);
  view.head = words(layout_.head);
  view.step = reinterpret_cast<std::uint64_t*>(steps_.data());
  view.sizes = words(layout_.sizes);
  if (shared_ != nullptr) shared_->lend(view, forKernels);
  return view;
}

}  // namespace tutti::net
