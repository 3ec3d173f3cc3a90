// The two halves of the planner. Only plan*.cc and tests include this.
#pragma once

#include "comm/plan.h"

namespace tutti {

/// Whether `func` is made of messages: Send, Recv, AlltoAll, Gather, Scatter.
bool isMessageFunc(ApiFunc func);

/// Appends the launches of the collectives among `ops` and sets what they use.
Status planCollectives(const PlanContext& context, std::span<const Op> ops, Plan& plan);

/// Appends the launches of the messages among `ops` and adds their peers.
Status planMessages(const PlanContext& context, std::span<const Op> ops, Plan& plan);

/// Adds channels [lo, hi] and a demand for threads to a launch.
void widen(PlannedLaunch& launch, unsigned lo, unsigned hi, unsigned threads);

/// Channels that launches of collectives may use.
unsigned usableChannels(const PlanContext& context);

/// The same for messages.
unsigned messageChannelsOf(const PlanContext& context);

}  // namespace tutti
