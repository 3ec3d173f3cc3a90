// Graphs with one head per channel, NVLS and CollNetDirect: which GPUs are heads, and through which NICs. Pure.
#pragma once

#include "topo/search/pack.h"

namespace tutti::topo {

/// The best heads and NICs for at most task.maxChannels channels, each GPU head of one at most; no channels where there
/// are none. Takes them one after another at the prices that those before leave.
Packing packHeads(const SearchModel& model, const PackTask& task);

}  // namespace tutti::topo
