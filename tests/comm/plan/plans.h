// Plans made at once, for tests.
#pragma once

#include <span>

#include "comm/plan/plan.h"
#include "comm/plan/plan_context.h"
#include "comm/plan/plan_text.h"
#include "comm/plan/planner.h"

namespace tutti::test {

inline Result<comm::Plan> planOf(const comm::PlanContext& context, std::span<const comm::Op> ops) {
  comm::Planner planner;
  comm::Plan plan;
  TRY(planner.plan(context, ops, plan));
  return plan;
}

}  // namespace tutti::test
