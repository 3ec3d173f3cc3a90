// The planner: what a group asked of one communicator -> a plan. Its answer depends on nothing but what it is given; no
// rank sees what the others were asked, so every choice rests on values that are equal on all ranks concerned.
#pragma once

#include <memory>
#include <span>

#include "base/status.h"

namespace tutti::comm {

class CollectivePlanner;
class MessagePlanner;
struct Op;
struct Plan;
struct PlanContext;

/// Keeps nothing from one plan to the next but storage.
class Planner {
 public:
  Planner();
  Planner(const Planner&) = delete;
  ~Planner();

  /// Plans `ops` in call order: first the collectives, those that share a kernel in one launch, spread over the
  /// channels; then all messages. Collectives without elements are left out; messages without content are not. What
  /// `plan` held is forgotten. ncclInvalidUsage: a message to oneself without its other half, or a collective that no
  /// allowed algorithm and protocol can do.
  Status plan(const PlanContext& context, std::span<const Op> ops, Plan& plan);

 private:
  std::unique_ptr<CollectivePlanner> collectives_;
  std::unique_ptr<MessagePlanner> messages_;
};

}  // namespace tutti::comm
