// How many channels a user allows. Plain values.
#pragma once

#include "topo/search/graph.h"

namespace tutti::topo {

/// NCCL_MIN_CTAS and NCCL_MAX_CTAS with their older names, and the configuration.
struct ChannelLimits {
  int fewest = 1;
  int most = kMostChannels;
};

}  // namespace tutti::topo
