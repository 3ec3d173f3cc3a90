#include "transport/pull_window.h"

#include <fmt/format.h>

#include <utility>

#include "device/policy.h"
#include "transport/fifo_layout.h"

namespace tutti::transport {

Result<PullWindow> PullWindow::ofSender(const Device& device) {
  PullWindow made;
  ASSIGN(made.window_, memoryWindow(device));
  return made;
}

Result<PullWindow> PullWindow::open(const Device& device, const LinkSpec& link, const MemoryWindow& senders) {
  PullWindow made;
  if (senders.bytes == 0) return made;
  if (!sameProcess(link.self, link.peer)) {
    ASSIGN(IpcMemory mapping,
           IpcMemory::open(device, senders.ipc, fmt::format("{} at {}", rankText(link.peer), rankText(link.self))));
    made.shift_ = static_cast<std::int64_t>(mapping.address() - senders.base);
    made.mapping_.emplace(std::move(mapping));
  }
  made.window_ = senders;
  return made;
}

void PullWindow::lend(device::ConnView& view, Side side, std::byte* receiver) const {
  if (empty()) return;
  const bool sends = side == Side::Sender;
  view.pullFrom = reinterpret_cast<std::uint64_t*>(receiver + kPullOffset);
  view.pullBase = sends ? window_.base : 0;
  view.pullBytes = sends ? window_.bytes : 0;
  view.pullShift = shift_;
  view.pullLeast = device::kPullLeast;
}

}  // namespace tutti::transport
