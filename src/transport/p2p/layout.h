// What the two ends of a P2P connection tell each other; fifo_layout.h says where things lie in what they share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cuda.h>

#include "gpu/ipc.h"
#include "transport/common/link_identity.h"
#include "transport/common/transport.h"
#include "transport/p2p/slab.h"

namespace tutti::p2p {

using device::Direction;

/// The contents of a ConnectHandle.
struct WireHandle : transport::LinkIdentity {
  std::uint64_t address = 0;   ///< in the owner's process; used only within it
  SlabName slab{};             ///< which it is a part of
  std::uint64_t offset = 0;    ///< in the slab
  std::uint32_t pulls = 0;     ///< 1: the receiver may read the sender's memory, if the sender has a window
  gpu::MemoryWindow window{};  ///< the sender's; empty at receivers
};
inline constexpr std::uint32_t kWireMagic = 0x70327033;
static_assert(sizeof(WireHandle) <= sizeof(transport::ConnectHandle) && std::is_trivially_copyable_v<WireHandle>);

}  // namespace tutti::p2p
