// How this process gets at the memory of the rank at the other end.
#pragma once

#include <memory>

#include "base/status.h"
#include "gpu/context.h"
#include "transport/common/transport.h"
#include "transport/p2p/layout.h"
#include "transport/p2p/memory.h"
#include "transport/p2p/slabs.h"

namespace tutti::p2p {

/// The peer's memory as this process addresses it; keeps the mapping where there is one, and the memory of a peer in
/// this process.
class PeerMemory {
 public:
  PeerMemory() = default;
  /// Within one process: enables access between the devices. Across processes: begins to map the peer's slab.
  static Result<PeerMemory> open(const gpu::Device& device, const transport::LinkSpec& link, const WireHandle& handle,
                                 Slabs& slabs);
  /// Whether address() is there. Never waits.
  Result<bool> advance();
  /// 0: not yet.
  CUdeviceptr address() const { return address_; }

 private:
  CUdeviceptr address_ = 0;
  std::shared_ptr<SharedMemory> shared_;  ///< within one process
  std::shared_ptr<SlabImport> import_;    ///< across processes
  std::size_t offset_ = 0;                ///< in it
};

}  // namespace tutti::p2p
