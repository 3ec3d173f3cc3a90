// What host threads will move for a plan, said to those who tell profilers of it (proxy/step_events.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/connect/step_counts.h"
#include "comm/enqueue/events/told_operations.h"
#include "comm/plan/plan.h"
#include "proxy/step_events.h"

struct ncclComm;

namespace tutti::comm {

/// The steps of one plan, which may be launched again and again; at first none. They are counted whether anybody
/// listens or not: that is how later operations are told from earlier ones.
class ExpectedPlan {
 public:
  /// From now on those of `plan`, which is that of the communicator, whose connections it runs over are open. Does not
  /// touch it later.
  void set(const ncclComm& comm, std::span<const ToldOperation> told, const Plan& plan);
  /// None again; keeps its storage.
  void clear();

  bool empty() const { return entries_.empty(); }
  /// Before its kernels are launched, or replayed. `handles`: of the operations' own events.
  void expect(std::span<void* const> handles) const;

 private:
  struct Entry {
    std::shared_ptr<proxy::StepEvents> events;
    proxy::ExpectedSteps steps;
    std::size_t operation = OperationFinder::kNobody;  ///< whose it is, of `told`
  };

  void addWorks(const ncclComm& comm, const PlannedLaunch& launch, OperationFinder& finder);
  void addCollNetWorks(const ncclComm& comm, const PlannedLaunch& launch, OperationFinder& finder);
  void add(const ncclComm& comm, int channel, const StepCount& count, std::size_t operation, int mask);
  void addUncounted(const ncclComm& comm, const Plan& plan);

  std::vector<Entry> entries_;
  std::vector<StepCount> counts_;  ///< storage
  std::vector<std::shared_ptr<proxy::StepEvents>> uncounted_;
};

}  // namespace tutti::comm
