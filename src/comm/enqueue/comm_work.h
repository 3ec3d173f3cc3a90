// What a group asks of one communicator, and how that is carried out: planned, connected, launched.
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "comm/state/call_gate.h"

struct ncclComm;

namespace tutti::comm {

struct Op;
struct LaunchedCall;
struct Plan;

/// One communicator's part of a group. Its steps come in the order of its members. Storage is kept from one group to
/// the next, so that a call like the one before it allocates nothing.
class CommWork {
 public:
  CommWork();
  ~CommWork();

  /// Forgets what was there before.
  void begin(ncclComm& comm);
  void add(const Op& op);

  /// Plans, and finds the connections that the plan uses and that are not open yet. From here on nobody frees the
  /// communicator, until leave(). Errors are the caller's mistakes and leave the communicator as it was.
  Status plan();
  /// ncclInvalidUsage, naming the operation, if another thread has revoked the communicator. Of one with operations.
  Status checkMayGoOn() const;
  /// Whether there is anything to be launched.
  bool launches() const;
  /// Whether connect() would have to wait for peers.
  bool mustConnect() const;
  /// Opens those connections; waits for these peers to do the same.
  Status connect();
  /// Loads the kernels of the plan. Loading may wait for the device, so all communicators of a group do it before the
  /// first of them launches. Errors: what the planner relied on has not come about (ChannelSet::checkMesh()); the
  /// driver's.
  Status loadKernels();
  /// Compares its collectives with those of all ranks where TUTTI_CHECK_CALLS asks for that, unless they are being
  /// captured; waits for all ranks. ncclInvalidUsage on all of them, naming two and their calls, where they differ; the
  /// communicator stays as it was then.
  Status checkCalls();
  /// Whether checkCalls() would wait.
  bool mustCheckCalls() const;
  /// Puts all kernels on the streams; never waits. What was called is known by then (CallLog), whatever becomes of
  /// that. `groupEvent`: what profilers know the group by.
  Status launch(void* groupEvent = nullptr);
  /// Nothing was launched, or nobody knows what, and the communicator goes on: its calls are compared no more, for
  /// others may have heard of these.
  void forgetCalls();
  /// The communicator may be freed.
  void leave();

  ncclComm& comm() const { return *comm_; }
  const Plan& planned() const;

 private:
  struct Kept;

  Result<bool> captured() const;
  LaunchedCall launchedCall() const;
  void noteWaiting();

  ncclComm* comm_ = nullptr;
  std::optional<CallGate::Pass> pass_;
  const std::unique_ptr<Kept> kept_;  ///< the storage
};

}  // namespace tutti::comm
