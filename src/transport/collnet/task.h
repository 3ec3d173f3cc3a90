// What the progress engine drives of a head's connection to the network: its sets of lanes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "proxy/task.h"
#include "transport/collnet/set_driver.h"

namespace tutti::collnet {

/// See proxy/task.h. All nodes must make the same calls in one order. Within a set that is the order of its steps;
/// between sets that of the operations, for no block of a kernel begins a work before it is done with the one before:
/// a step of one set is filled only when all calls of the other have come to their end.
class CollNetTask final : public proxy::ProgressTask {
 public:
  /// Sets of a connection.
  static constexpr std::size_t kMostSets = 2;

  explicit CollNetTask(Connection& connection) : connection_(connection) {}
  /// Not while an engine has the task, but beside counters() and describe(). At most kMostSets.
  void add(SetSetup setup);

  /// What profilers hear of the steps of a set in one direction. Any thread.
  std::shared_ptr<proxy::StepEvents> stepEvents(std::size_t set, device::Direction direction) const;

  Result<bool> advance() override;
  bool quiet() const override;
  proxy::TaskCounters counters() const override { return connection_.tally.read(); }
  std::string describe() const override;
  proxy::PendingSend hold() const override;

 private:
  Result<bool> advanceSets();
  const SetDriver* busyBeside(std::size_t set) const;
  /// Of the set to speak of: one that waits for something in particular, or has come farthest. Null: there are none.
  struct Shown {
    const SetDriver* set = nullptr;
    SetFacts facts;
  };
  Shown shown() const;

  Connection& connection_;
  std::array<std::unique_ptr<SetDriver>, kMostSets> sets_;
  std::atomic<std::size_t> count_{0};
  std::optional<Status> failed_;  ///< the network is not asked again
};

}  // namespace tutti::collnet
