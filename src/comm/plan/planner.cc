#include "comm/plan/planner.h"

#include <algorithm>

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
  }
  TRY(collectives_->plan(context, ops, plan));
  return messages_->plan(context, ops, plan);
}

}  // namespace tutti::comm
