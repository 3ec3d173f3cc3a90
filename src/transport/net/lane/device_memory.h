// How a network is given memory of a device: as a dma-buf, or by its address. What it refuses is known only when it is
// asked for the very memory: drivers and kernels have limits of their own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/status.h"
#include "gpu/dma_buf.h"
#include "plugin/network/net.h"
#include "transport/net/lane/slot_place.h"

namespace tutti::net {

/// Device memory that a network is to read or write itself. All is borrowed.
struct DeviceRange {
  const gpu::Device& device;
  void* data;
  std::size_t bytes;
  std::string_view about;  ///< whose it is, for messages
};

/// `Network`: plugin::Net or plugin::CollNet. Errors: of the driver, or the network's.
template <typename Network>
Result<void*> registerDmaBufOf(Network& network, void* connection, const DeviceRange& range) {
  ASSIGN(const gpu::DmaBuf buffer, gpu::dmaBufOf(range.device, range.data, range.bytes, range.about));
  return network.registerDmaBuf(connection, range.data, range.bytes, buffer.offset, buffer.fd.get());
}

/// Tells the network of it in the first of the ways of `place` that it takes; INFO says why it did not take the
/// dma-buf. The result may be null and still valid. Errors: of the last way.
template <typename Network>
Result<void*> registerDeviceMemory(Network& network, void* connection, const DeviceRange& range,
                                   const SlotPlace& place) {
  if (place.dmaBuf && !place.orAddress) return registerDmaBufOf(network, connection, range);
  if (place.dmaBuf) {
    const ErrorsAsInfo harmless;
    Result<void*> taken = registerDmaBufOf(network, connection, range);
    if (taken.ok()) return taken;
    info(kInit | kNet,
         "{}: {} bytes of GPU memory are given to the network by their address, for as a dma-buf they cannot be: {}",
         range.about, range.bytes, lastErrorText());
  }
  return network.registerMemory(connection, range.data, range.bytes, plugin::PtrKind::Cuda);
}

}  // namespace tutti::net
