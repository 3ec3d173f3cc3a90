// Who holds an operation up: what all ranks say of themselves -> a sentence.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "comm/stall_state.h"

namespace tutti {

/// What one rank knows when it judges.
struct StallCase {
  int self = 0;
  int nRanks = 1;
  RankState own;
  std::map<int, RankState> answers;                  ///< of other ranks; those that are missing did not answer
  std::function<std::string(int)> describe;          ///< "rank 5 (host b, device 0)"
  std::function<int(int)> parent;                    ///< in the tree that carries the answers; -1: none
  std::function<std::string(std::uint64_t)> nameOf;  ///< of the n-th collective, counted from 1; empty: not known
};

/// One sentence that names whoever the operation waits for, as far as the answers tell. Pure.
std::string judgeStall(const StallCase& stall);

}  // namespace tutti
