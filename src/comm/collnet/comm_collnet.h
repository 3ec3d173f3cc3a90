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

namespace tutti::collnet {
class CollNetLink;
}
namespace tutti::device {
struct CollNetConn;
}  // namespace tutti::device
namespace tutti::gpu {
class DeviceBuffer;
}
namespace tutti::proxy {
class ProgressTask;
class StepEvents;
}  // namespace tutti::proxy

namespace tutti::comm {

struct CollNetMember;
struct CollNetOutcome;

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
  const device::CollNetView* view() const;
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
  std::unique_ptr<gpu::DeviceBuffer> table_;
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
