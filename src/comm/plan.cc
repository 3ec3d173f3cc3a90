#include "comm/plan.h"

#include <algorithm>

#include "comm/plan_parts.h"

namespace tutti {

bool isMessageFunc(ApiFunc func) {
  switch (func) {
    case ApiFunc::AllReduce:
    case ApiFunc::Reduce:
    case ApiFunc::Broadcast:
    case ApiFunc::AllGather:
    case ApiFunc::ReduceScatter: return false;
    case ApiFunc::Send:
    case ApiFunc::Recv:
    case ApiFunc::AlltoAll:
    case ApiFunc::Gather:
    case ApiFunc::Scatter: return true;
  }
  return false;
}

void widen(PlannedLaunch& launch, unsigned lo, unsigned hi, unsigned threads) {
  if (launch.nWorks() == 0) {
    launch.firstChannel = lo;
    launch.nChannels = hi - lo + 1;
    launch.nThreads = threads;
    return;
  }
  const unsigned first = std::min(launch.firstChannel, lo);
  const unsigned last = std::max(launch.firstChannel + launch.nChannels - 1, hi);
  launch.firstChannel = first;
  launch.nChannels = last - first + 1;
  launch.nThreads = std::max(launch.nThreads, threads);
}

Result<Plan> makePlan(const PlanContext& context, std::span<const Op> ops) {
  Plan plan;
  for (const Op& op : ops) {
    if (std::find(plan.streams.begin(), plan.streams.end(), op.stream) == plan.streams.end()) {
      plan.streams.push_back(op.stream);
    }
  }
  TRY(planCollectives(context, ops, plan));
  TRY(planMessages(context, ops, plan));
  return plan;
}

}  // namespace tutti
