// Which connections the operations of a plan run over: plain facts -> a value. They are opened when first used.
#pragma once

#include <vector>

#include "comm/connect.h"
#include "comm/plan.h"

namespace tutti {

/// Whom a rank is joined with in each structure that algorithms follow.
struct Neighbours {
  int rank = 0;
  int ringPrev = 0;         ///< the rank itself where it is alone
  int ringNext = 0;
  std::vector<int> tree;    ///< in both trees
  std::vector<int> pat;
};

/// Every connection that `plan` uses, on `channels` channels each, without repetition. The rank at the other end of each
/// finds the mirrored one in its own list if it was given the same collectives and the other half of each message.
std::vector<LinkRequest> linksOf(const Plan& plan, const Neighbours& neighbours, int channels);

}  // namespace tutti
