#include "comm/plan/planner.h"

#include <algorithm>

#include "base/log.h"
#include "comm/plan/op.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_collectives.h"
#include "comm/plan/plan_messages.h"

namespace tutti::comm {

Planner::Planner()
    : collectives_(std::make_unique<CollectivePlanner>()), messages_(std::make_unique<MessagePlanner>()) {}

Planner::~Planner() = default;

Status Planner::plan(const PlanContext& context, std::span<const Op> ops, Plan& plan) {
  plan.clear();
  for (const Op& op : ops) {
    if (std::find(plan.streams.begin(), plan.streams.end(), op.stream) == plan.streams.end()) {
      plan.streams.push_back(op.stream);
    }
    if (op.launchEvent == nullptr) continue;
    if (plan.launchEvent != nullptr) {
      return fail(ncclInvalidArgument,
                  "{}: a launchCompletionEvent, and an earlier operation of the group has one; at most one of a "
                  "communicator is possible in a group",
                  apiFuncName(op.func));
    }
    plan.launchEvent = op.launchEvent;
  }
  TRY(collectives_->plan(context, ops, plan));
  return messages_->plan(context, ops, plan);
}

}  // namespace tutti::comm
