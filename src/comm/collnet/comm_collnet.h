// A communicator's part in the network's own collectives: set up by all ranks together, or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/tuning/collnet_facts.h"
#include "device/collnet_view.h"
#include "device/work.h"
#include "gpu/memory.h"
#include "topo/machine/peer_info.h"

namespace tutti {
class Abort;
class ControlChannel;
}  // namespace tutti
namespace tutti::collnet {
class CollNetLink;
}
namespace tutti::device {
struct CollNetConn;
struct CollNetView;
}  // namespace tutti::device
namespace tutti::proxy {
class StepEvents;
class ProgressGroup;
class ProgressTask;
}  // namespace tutti::proxy
namespace tutti::topo {
class RankLayout;
}
namespace tutti::transport {
class RegisteredMemory;
}

namespace tutti::comm {

class CommNetwork;
struct CollNetLanes;
struct CollNetOutcome;
struct CommSettings;
struct NodeHeads;
struct Rails;

/// What a rank brings along; borrowed for the call, but for `device` and `progress`, which must outlive what is made.
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

/// Steps of a head that kernels of one algorithm make, for profilers.
struct CollNetSteps {
  std::shared_ptr<proxy::StepEvents> send;  ///< null: this rank is no head of the algorithm
  std::shared_ptr<proxy::StepEvents> recv;
  int channel = 0;          ///< the first lane's
  std::uint32_t lanes = 0;  ///< that make a step together
};

/// Owns what a rank has for the network's collectives. Before its end the engine must have let go of the communicator,
/// and no kernel may run; the network goes later.
class CommCollNet {
 public:
  /// Collective. The heads of each rail join the network, which all ranks then agree on: where anything fails on any of
  /// them, nobody has it, and the outcome says whose failure that was and why. Bounded by the control channel's timeout
  /// and `abort`. Errors: the exchange's alone.
  static Result<CollNetOutcome> join(const CollNetMember& member);
  CommCollNet(const CommCollNet&) = delete;
  CommCollNet& operator=(const CommCollNet&) = delete;
  ~CommCollNet();

  /// As kernels address it.
  const device::CollNetView* view() const { return reinterpret_cast<const device::CollNetView*>(table_->data()); }
  /// Leaves the network, which uses no memory any more then; nothing else can be done with it. No engine may advance
  /// the task, and no kernel may run, then or later.
  void close();
  /// What a host thread drives of it; null: this rank is no head.
  const proxy::ProgressTask* task() const;
  /// Of CollNetDirect or CollNetChain. Any thread.
  CollNetSteps steps(device::Algorithm algorithm) const;
  /// How many of them a work of the algorithm makes. `chunk`: elements of its chunks.
  std::uint64_t countSteps(device::Algorithm algorithm, device::Func func, std::uint64_t count,
                           std::uint64_t chunk) const;
  /// Without speeds; the same on all ranks.
  const CollNetFacts& facts() const { return facts_; }

 private:
  explicit CommCollNet(std::unique_ptr<collnet::CollNetLink> link);
  Status addLanes(const CollNetMember& member);
  Status writeTable(const CollNetMember& member);

  std::unique_ptr<collnet::CollNetLink> link_;  ///< null: this rank is no head
  std::vector<device::CollNetConn> direct_;     ///< by lane
  std::vector<device::CollNetConn> chain_;
  std::optional<gpu::DeviceBuffer> table_;
  device::CollNetView counted_{};  ///< as kernels see it, but for what lies on the device
  struct Set {
    std::size_t number = 0;  ///< of the link's
    int channel = 0;         ///< of its first lane
  };
  Set directSet_, chainSet_;  ///< where there are such lanes
  CollNetFacts facts_;
};

/// What came of joining, the same on all ranks.
struct CollNetOutcome {
  std::unique_ptr<CommCollNet> collNet;  ///< null: it is not used …
  std::string why;                       ///< … because of this
};

}  // namespace tutti::comm
