// How this process gets at the memory of the rank at the other end.
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "gpu/context.h"
#include "gpu/ipc.h"
#include "topo/machine/peer_info.h"
#include "transport/p2p/layout.h"
#include "transport/p2p/memory.h"

namespace tutti::p2p {

/// The peer's allocation as this process addresses it; owns the mapping where there is one, and keeps the memory of a
/// peer in this process.
class PeerMemory {
 public:
  PeerMemory() = default;
  /// Within one process: enables access between the devices. Across processes: maps the IPC handle.
  static Result<PeerMemory> open(const gpu::Device& device, const topo::PeerInfo& self, const topo::PeerInfo& peer,
                                 const WireHandle& handle);
  CUdeviceptr address() const { return address_; }

 private:
  CUdeviceptr address_ = 0;
  std::optional<gpu::IpcMemory> mapping_;
  std::shared_ptr<SharedMemory> shared_;  ///< within one process
};

}  // namespace tutti::p2p
