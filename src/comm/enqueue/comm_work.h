// What a group asks of one communicator, and how that is carried out: planned, connected, launched.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "comm/connect/link_types.h"
#include "comm/launch/prepared_launch.h"
#include "comm/plan/op.h"
#include "comm/plan/planner.h"
#include "comm/state/call_gate.h"

struct ncclComm;

namespace tutti::comm {

/// One communicator's part of a group. Its steps come in the order of its members. Storage is kept from one group to
/// the next, so that a call like the one before it allocates nothing.
class CommWork {
 public:
  /// Forgets what was there before.
  void begin(ncclComm& comm);
  void add(const Op& op) { ops_.push_back(op); }

  /// Plans, and finds the connections that the plan uses and that are not open yet. From here on nobody frees the
  /// communicator, until leave(). Errors are the caller's mistakes and leave the communicator as it was.
  Status plan();
  /// ncclInvalidUsage, naming the operation, if another thread has revoked the communicator. Of one with operations.
  Status checkMayGoOn() const;
  /// Whether connect() would have to wait for peers.
  bool mustConnect() const { return !missing_.empty(); }
  /// Opens those connections; waits for these peers to do the same.
  Status connect();
  /// Loads the kernels of the plan. Loading may wait for the device, so all communicators of a group do it before the
  /// first of them launches. Errors: what the planner relied on has not come about (checkMesh()); the driver's.
  Status loadKernels();
  /// Puts all kernels on the streams; never waits.
  Status launch();
  /// The communicator may be freed.
  void leave();

  ncclComm& comm() const { return *comm_; }
  const Plan& planned() const { return plan_; }

 private:
  Status checkMesh() const;

  ncclComm* comm_ = nullptr;
  std::optional<CallGate::Pass> pass_;
  std::vector<Op> ops_;
  Planner planner_;
  Plan plan_;
  std::vector<LinkRequest> missing_;
  std::vector<PreparedLaunch> launches_;  ///< one per launch of the plan, once loadKernels() was there
};

}  // namespace tutti::comm
