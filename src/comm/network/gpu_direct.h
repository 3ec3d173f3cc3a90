// GPUDirect RDMA: whether a network's device reads and writes this rank's GPU memory itself. Plain facts -> a value.
#pragma once

#include <optional>

#include "comm/network/own_nics.h"
#include "device/direction.h"
#include "transport/net/lane/slot_place.h"

namespace tutti::plugin {
struct NetProperties;
}

namespace tutti::comm {

struct GpuDirectSettings;

/// One end of a connection over a network.
struct GpuDirectQuestion {
  const plugin::NetProperties& device;
  std::optional<NicAccess> access;  ///< what the machine says of the device and our GPU; empty: nothing
  device::Direction direction = device::Direction::Send;
  int computeCapability = 0;
  bool softGpu = false;
  bool dmaBufs = false;  ///< the driver gives, and the network takes, GPU memory as dma-bufs
};

/// Whether the device takes GPU memory at all.
bool takesGpuMemory(const plugin::NetProperties& device, bool dmaBufs);

/// Slots lie on the GPU where the device takes its memory and is near enough (NCCL_NET_GDR_LEVEL); senders' also only
/// where the GPU is read well (NCCL_NET_GDR_READ). Where nothing is known of the machine, only a software GPU's, whose
/// memory is any process's memory. Flushed: before compute capability 9, where the device asks for it, and where data
/// and counters reach the GPU on different paths (docs/network.md).
net::SlotPlace slotPlaceFor(const GpuDirectQuestion& question, const GpuDirectSettings& settings);

}  // namespace tutti::comm
