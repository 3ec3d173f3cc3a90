#include "transport/common/pull_window.h"

#include <fmt/format.h>

#include <utility>

#include "device/policy.h"
#include "transport/common/fifo_layout.h"

namespace tutti::transport {

Result<PullWindow> PullWindow::ofSender(const gpu::Device& device) {
  PullWindow made;
  ASSIGN(made.window_, gpu::memoryWindow(device));
  return made;
}

PullWindow::PullWindow(const gpu::MemoryWindow& senders, std::optional<gpu::IpcMemory> mapping)
    : window_(senders), mapping_(std::move(mapping)) {
  if (mapping_) shift_ = static_cast<std::int64_t>(mapping_->address() - senders.base);
}

Result<PullWindow> PullWindow::open(const gpu::Device& device, const LinkSpec& link, const gpu::MemoryWindow& senders) {
  if (senders.bytes == 0) return PullWindow();
  if (sameProcess(link.self, link.peer)) return PullWindow(senders, {});
  ASSIGN(gpu::IpcMemory mapping,
         gpu::IpcMemory::open(device, senders.ipc, fmt::format("{} at {}", rankText(link.peer), rankText(link.self))));
  return PullWindow(senders, std::move(mapping));
}

Result<PullWindow> PullWindow::openIfAllowed(const gpu::Device& device, const LinkSpec& link,
                                             const gpu::MemoryWindow& senders, std::string& why) {
  if (senders.bytes == 0) return PullWindow();
  if (sameProcess(link.self, link.peer)) return PullWindow(senders, {});
  ASSIGN(std::optional<gpu::IpcMemory> mapping, gpu::IpcMemory::openIfAllowed(device, senders.ipc, why));
  if (!mapping) return PullWindow();
  return PullWindow(senders, std::move(mapping));
}

device::SendPull PullWindow::senderPull(std::byte* receiver) const {
  if (empty()) return {};
  return {.addresses = reinterpret_cast<device::SlotWords*>(receiver + kPullOffset),
          .window = {window_.base, window_.bytes},
          .least = device::kPullLeast,
          .registeredOnly = 0};
}

device::RecvPull PullWindow::receiverPull(const std::byte* receiver) const {
  if (empty()) return {};
  return {.addresses = reinterpret_cast<const device::SlotWords*>(receiver + kPullOffset), .shift = shift_};
}

ConnView connView(device::Direction direction, const SlotBytes& slotBytes, const EndAddresses& at,
                  const PullWindow& window) {
  if (direction == device::Direction::Send) {
    return device::SendConn{{fifosIn(slotBytes, at.peer, at.own, at.steps)}, window.senderPull(at.peer), nullptr, {}};
  }
  return device::RecvConn{{fifosIn(slotBytes, at.own, at.peer, at.steps)}, window.receiverPull(at.own), nullptr, {}};
}

}  // namespace tutti::transport
