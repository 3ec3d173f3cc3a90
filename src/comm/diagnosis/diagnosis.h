// Who holds an operation up: what all ranks say of themselves -> a sentence.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "comm/diagnosis/call_log.h"
#include "comm/diagnosis/stall_state.h"

namespace tutti::comm {

/// What one rank knows when it judges.
struct StallCase {
  int self = 0;
  int nRanks = 1;
  RankState own;
  std::map<int, RankState> answers;          ///< of other ranks; those that are missing did not answer
  milliseconds limit{0};                     ///< after which an operation that does not move is stalled; 0: never
  std::function<bool(int)> hasLeft;          ///< has destroyed its communicator: it answers no more
  std::function<std::string(int)> describe;  ///< "rank 5 (host b, device 0)"
  std::function<int(int)> parent;            ///< in the tree that carries the answers; -1: none
  /// The n-th collective of this rank, counted from 1; unset: not known.
  std::function<std::optional<Call>(std::uint64_t)> callOf;

  /// What is known of a rank; null: it has not answered.
  const RankState* stateOf(int rank) const;
  /// It has left: it answers no more, and nobody is asked through it.
  bool gone(int rank) const;
  /// Kernels run there, and it does not say that they are stalled: they began, or were seen to move, not long ago.
  /// Where stalls are not looked for nobody says so; then only time tells.
  bool moves(int rank) const;
};

struct Diagnosis {
  std::string text;    ///< a sentence that names whoever the operation waits for, as far as the answers tell
  bool moves = false;  ///< that rank has moved within its limit, or begun: this is no stall as yet
};

/// Pure.
Diagnosis judgeStall(const StallCase& stall);

}  // namespace tutti::comm
