// What one end of a connection over a network has in memory: slots and counters for its kernels, messages for the
// network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "device/conn_view.h"
#include "gpu/ipc.h"
#include "gpu/memory.h"
#include "transport/net/endpoint/end_layout.h"
#include "transport/net/lane/path.h"
#include "transport/net/lane/shared_slots.h"

namespace tutti::net {

/// What kernels remember from one to the next, in device memory.
struct PrivateCounters {
  device::Counter step[device::kProtocols];
  device::Counter asked;  ///< a receiver's that shares slots
};

/// Memory of the device that the network reads or writes where kernels say so; empty: none.
struct NetWindow {
  gpu::MemoryWindow memory = {};
  bool registeredOnly = false;  ///< only what kernels are told is registered
};

/// One allocation of pinned host memory, the kernels' private counters in device memory, and, if asked for, the slots
/// of the Simple protocol there as well. `device` must outlive it.
class EndMemory {
 public:
  /// `shared`: the Simple slots, if several connections have them; must outlive it. `ledger`, which may be null,
  /// counts it.
  static Result<EndMemory> create(const gpu::Device& device, const NetPath& path, bool slotsOnDevice,
                                  const SharedSlots* shared, const NetWindow& window,
                                  const std::shared_ptr<gpu::MemoryLedger>& ledger = {});

  std::byte* host() const { return pinned_.host(); }
  std::size_t hostBytes() const { return pinned_.size(); }
  const EndLayout& layout() const { return layout_; }
  /// The Simple slots in device memory; null: in host memory.
  const gpu::DeviceBuffer* deviceSlots() const { return slots_ ? &*slots_ : nullptr; }
  /// A sender's (receiver's) connection, as kernels address it or as the host and the network do.
  device::SendConn sendView(Viewer viewer) const;
  device::RecvConn recvView(Viewer viewer) const;

 private:
  EndMemory(const NetPath& path, const EndLayout& layout, gpu::PinnedBuffer pinned, gpu::DeviceBuffer steps)
      : slotBytes_(path.link.slotBytes), layout_(layout), pinned_(std::move(pinned)), steps_(std::move(steps)) {}
  std::byte* at(std::size_t offset, Viewer viewer) const {
    return (viewer == Viewer::Kernels ? pinned_.onDevice() : pinned_.host()) + offset;
  }
  device::ConnFifos fifos(Viewer viewer) const;

  device::SlotBytes slotBytes_;
  EndLayout layout_;
  gpu::PinnedBuffer pinned_;
  gpu::DeviceBuffer steps_;
  std::optional<gpu::DeviceBuffer> slots_;
  const SharedSlots* shared_ = nullptr;
  NetWindow window_;
};

}  // namespace tutti::net
