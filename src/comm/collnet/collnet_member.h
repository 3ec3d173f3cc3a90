// What a rank brings along when a communicator joins the network's own collectives.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "topo/machine/peer_info.h"

namespace tutti {
class Abort;
class ControlChannel;
}  // namespace tutti
namespace tutti::gpu {
class Device;
class MemoryLedger;
}  // namespace tutti::gpu
namespace tutti::proxy {
class ProgressGroup;
}
namespace tutti::topo {
class RankLayout;
}
namespace tutti::transport {
class RegisteredMemory;
}

namespace tutti::comm {

class CommNetwork;
struct CollNetLanes;
struct CommSettings;
struct NodeHeads;
struct Rails;

/// Borrowed for the call, but for `device` and `progress`, which must outlive what is made.
struct CollNetMember {
  ControlChannel& control;
  const Abort& abort;
  const gpu::Device& device;
  std::shared_ptr<CommNetwork> network;
  proxy::ProgressGroup& progress;
  const topo::RankLayout& layout;
  std::span<const topo::PeerInfo> peers;
  const CommSettings& settings;
  const NodeHeads& node;
  const Rails& rails;
  const CollNetLanes& lanes;
  std::uint32_t slotBytes = 0;
  std::shared_ptr<gpu::MemoryLedger> ledger;
  std::shared_ptr<transport::RegisteredMemory> registered;  ///< null: kernels let the network past no slots
};

}  // namespace tutti::comm
