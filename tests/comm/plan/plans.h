// Plans made at once, for tests.
#pragma once

#include <span>

#include "comm/plan/plan_text.h"
#include "comm/plan/planner.h"

namespace tutti::test {

inline Result<Plan> planOf(const PlanContext& context, std::span<const Op> ops) {
  Planner planner;
  Plan plan;
  TRY(planner.plan(context, ops, plan));
  return plan;
}

}  // namespace tutti::test
