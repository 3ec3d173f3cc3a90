// What profilers are told of a plan as it is launched, or as a graph with it is replayed (docs/profiling.md).
#pragma once

#include <memory>
#include <span>

#include "base/status.h"
#include "comm/launch/prepared_launch.h"

struct ncclComm;

namespace tutti::comm {

class PlanEvents;
struct Op;
struct Plan;

/// Tells of one launch of a plan, as long as it lives, and of each kernel in it.
class LaunchEvents final : public LaunchListener {
 public:
  /// `group`: the handle of the group's own event. Nothing is told where the communicator has no listener. What is
  /// captured is told at every replay, from a thread of the driver's, but for its kernels. `kept`: events for it to
  /// use, or null; of no use to anybody else meanwhile.
  LaunchEvents(ncclComm& comm, std::span<const Op> ops, Plan& plan, void* group, std::shared_ptr<PlanEvents>& kept);
  LaunchEvents(const LaunchEvents&) = delete;
  LaunchEvents& operator=(const LaunchEvents&) = delete;
  ~LaunchEvents() override;

  /// Null: nobody wants to hear of the launch itself.
  LaunchListener* listener() { return kernels_ || plan_ != nullptr ? this : nullptr; }
  Status first(CUstream stream, CUgraph captured) override;
  void* before(CUstream stream) override;
  void after(void* handle) override;

 private:
  Status callFirst(CUstream stream, CUhostFn function, void* argument) const;

  ncclComm& comm_;
  void* group_;
  bool kernels_ = false;
  std::shared_ptr<PlanEvents> plan_;  ///< null: nothing to tell
  std::shared_ptr<PlanEvents>& kept_;
  bool started_ = false;
};

}  // namespace tutti::comm
