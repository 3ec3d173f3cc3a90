// What lets a receiver read the sender's memory where it lies (docs/protocols.md, "Pulling").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "device/conn_view.h"
#include "gpu/ipc.h"
#include "transport/common/fifo_layout.h"
#include "transport/common/ranks.h"
#include "transport/common/transport.h"

namespace tutti::transport {

/// The sender's window as one end of a connection knows it. Empty: nothing is pulled. Not for several threads.
class PullWindow {
 public:
  PullWindow() = default;
  /// Sender: of its device; empty on GPUs.
  static Result<PullWindow> ofSender(const gpu::Device& device);
  /// Receiver: makes `senders`, which may be empty, readable for kernels of `device`. Errors: the driver's, if the
  /// sender's process does not let this one map its memory.
  static Result<PullWindow> open(const gpu::Device& device, const LinkSpec& link, const gpu::MemoryWindow& senders);
  /// The same for ends that can do without: empty where the driver refuses, which is no error. `why` says how.
  static Result<PullWindow> openIfAllowed(const gpu::Device& device, const LinkSpec& link,
                                          const gpu::MemoryWindow& senders, std::string& why);

  bool empty() const { return window_.bytes == 0; }
  /// As the sender tells it.
  const gpu::MemoryWindow& window() const { return window_; }
  /// Lets the kernels of a sender offer. `receiver`: the receiver's memory (fifo_layout.h) as they address it.
  device::SendPull senderPull(std::byte* receiver) const;
  /// Lets the kernels of a receiver pull what is offered. `receiver`: as above.
  device::RecvPull receiverPull(const std::byte* receiver) const;

 private:
  /// `mapping`: unset within a process.
  PullWindow(const gpu::MemoryWindow& senders, std::optional<gpu::IpcMemory> mapping);

  gpu::MemoryWindow window_;
  std::int64_t shift_ = 0;  ///< receiver: from the sender's addresses to this process's
  std::optional<gpu::IpcMemory> mapping_;
};

/// What an end's device addresses: its own memory and the other end's (fifo_layout.h), and its private counters.
struct EndAddresses {
  std::byte* own;
  std::byte* peer;
  std::byte* steps;
};

/// The view of an end whose peer's kernels share its memory.
ConnView connView(device::Direction direction, const SlotBytes& slotBytes, const EndAddresses& at,
                  const PullWindow& window);

}  // namespace tutti::transport
