#include "topo/search/memory.h"

#include <algorithm>

namespace tutti::topo {

SearchMemory::SearchMemory(const SearchModel& model) : model_(model) {
  for (int net = 0; net < model.netCount(); ++net) {
    allCollective_ = allCollective_ && model.machine().facts<NetFacts>(model.netNode(net)).collective;
  }
}

float SearchMemory::channelBound(Pattern pattern, bool collectiveOnly, float inside) {
  const bool isRing = pattern == Pattern::Ring;
  const bool some = collectiveOnly && !allCollective_;
  const auto known = std::find_if(cuts_.begin(), cuts_.end(),
                                  [&](const Cuts& c) { return c.isRing == isRing && c.collectiveOnly == some; });
  if (known != cuts_.end()) return known->cuts.bound(inside);
  cuts_.push_back({isRing, some, channelCuts(model_, isRing, some)});
  return cuts_.back().cuts.bound(inside);
}

const Packing& SearchMemory::pack(PackTask task) {
  task.collectiveOnly = task.collectiveOnly && !allCollective_;
  const auto known = std::find_if(packings_.begin(), packings_.end(), [&](const auto& p) { return p.first == task; });
  if (known != packings_.end()) return known->second;
  packings_.emplace_back(task, Packer(model_, task).run());
  return packings_.back().second;
}

}  // namespace tutti::topo
