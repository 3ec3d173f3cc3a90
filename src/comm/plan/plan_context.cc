#include "comm/plan/plan_context.h"

#include <algorithm>

namespace tutti::comm {

unsigned usableChannels(const PlanContext& context) {
  return std::max(1U, std::min(context.nChannels(), context.policy().maxChannels));
}

unsigned messageChannelsOf(const PlanContext& context) {
  return channelsForMessages(context.messages, usableChannels(context), std::max(1U, context.nChannels()));
}

}  // namespace tutti::comm
