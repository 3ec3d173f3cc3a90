#include "transport/net/endpoint/memory.h"

#include <utility>

#include "device/policy.h"
#include "gpu/memory_ledger.h"

namespace tutti::net {
Result<EndMemory> EndMemory::create(const gpu::Device& device, const NetPath& path, bool slotsOnDevice,
                                    const SharedSlots* shared, const NetWindow& window,
                                    const std::shared_ptr<gpu::MemoryLedger>& ledger) {
  const std::string about = path.text();
  const device::SlotBytes& slotBytes = path.link.slotBytes;
  const EndLayout layout = endLayout(slotBytes, path.direction, slotsOnDevice || shared != nullptr);
  ASSIGN(gpu::PinnedBuffer pinned, gpu::PinnedBuffer::create(device, layout.bytes, about));
  ASSIGN(gpu::DeviceBuffer steps, gpu::DeviceBuffer::create(device, sizeof(PrivateCounters), {about, ledger}));
  EndMemory memory(path, layout, std::move(pinned), std::move(steps));
  memory.shared_ = shared;
  memory.window_ = window;
  if (slotsOnDevice && shared == nullptr && slotBytes[EndLayout::kSimple] != 0) {
    ASSIGN(gpu::DeviceBuffer slots,
           gpu::DeviceBuffer::create(device, std::size_t{slotBytes[EndLayout::kSimple]} * device::kSteps,
                                     {about, ledger}));
    memory.slots_.emplace(std::move(slots));
  }
  return memory;
}

device::ConnFifos EndMemory::fifos(Viewer viewer) const {
  device::ConnFifos fifos{};
  for (std::size_t p = 0; p < slotBytes_.size(); ++p) {
    fifos.slotBytes[p] = slotBytes_[p];
    if (slotBytes_[p] != 0) fifos.slots[p] = at(layout_.slots[p], viewer);
  }
  if (slots_) fifos.slots[EndLayout::kSimple] = slots_->data();
  if (shared_ != nullptr) fifos.slots[EndLayout::kSimple] = shared_->slots(viewer);
  fifos.tail = reinterpret_cast<device::Counter*>(at(layout_.tail, viewer));
  fifos.head = reinterpret_cast<device::Counter*>(at(layout_.head, viewer));
  fifos.step = reinterpret_cast<PrivateCounters*>(steps_.data())->step;
  return fifos;
}

device::SendConn EndMemory::sendView(Viewer viewer) const {
  device::SendConn view{{fifos(viewer)}, {}, reinterpret_cast<device::SendWords*>(at(layout_.words, viewer)), {}};
  if (window_.memory.bytes != 0) {
    // What kernels offer is read in this process: its address is the same there.
    view.pull = {.addresses = reinterpret_cast<device::SlotWords*>(at(layout_.addresses, viewer)),
                 .window = {window_.memory.base, window_.memory.bytes},
                 .least = device::kPullLeast,
                 .registeredOnly = window_.registeredOnly ? 1U : 0U};
  }
  if (shared_ != nullptr) view.shared = shared_->ofSender(viewer);
  return view;
}

device::RecvConn EndMemory::recvView(Viewer viewer) const {
  device::RecvConn view{{fifos(viewer)}, {}, reinterpret_cast<device::RecvWords*>(at(layout_.words, viewer)), {}};
  if (shared_ == nullptr) return view;
  view.shared = {.taken = shared_->taken(),
                 .asked = &reinterpret_cast<PrivateCounters*>(steps_.data())->asked.value,
                 .window = {window_.memory.base, window_.memory.bytes},
                 .least = device::kPullLeast,
                 .count = shared_->shape().slots};
  return view;
}

}  // namespace tutti::net
