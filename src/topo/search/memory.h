// What was found on one model, for the searches that follow on it. Pure: nothing depends on what is remembered.
#pragma once

#include <utility>
#include <vector>

#include "topo/search/bound.h"
#include "topo/search/model.h"
#include "topo/search/pack.h"

namespace tutti::topo {

/// One thread at a time. The model has to stay.
class SearchMemory {
 public:
  explicit SearchMemory(const SearchModel& model);

  /// channelBound()
  float channelBound(Pattern pattern, bool collectiveOnly, float inside = 1);
  /// Packer's result. Trees and collNet's chains often ask for the same.
  const Packing& pack(PackTask task);

 private:
  struct Cuts {
    bool isRing = false;
    bool collectiveOnly = false;
    ChannelCuts cuts;
  };

  const SearchModel& model_;
  bool allCollective_ = true;  ///< so that asking for such NICs alone makes no difference
  std::vector<Cuts> cuts_;
  std::vector<std::pair<PackTask, Packing>> packings_;
};

}  // namespace tutti::topo
