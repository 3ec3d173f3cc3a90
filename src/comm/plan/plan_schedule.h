// In which order a rank exchanges messages with the others.
#pragma once

#include <vector>

namespace tutti::comm {

/// Rounds of messages among n ranks. In every round each rank sends to exactly one rank and receives from exactly one,
/// and over all rounds each pair meets once in each direction. Ranks are taken in groups of neighbours (of one node, so
/// far as the numbers go): between groups the distance grows by triangular numbers, which keeps early rounds from
/// crossing the same links; within a group pairs rotate. A value, the same on all ranks.
class MessageSchedule {
 public:
  /// A group has as many ranks as the largest divisor of nRanks up to `mostPerGroup`.
  MessageSchedule(int nRanks, int mostPerGroup);

  /// The round in which `from` sends to `to`: 0..n-1; 0 is every rank with itself.
  int roundOf(int from, int to) const;
  int rounds() const { return nRanks_; }
  /// Whether it was made of these two numbers.
  bool isFor(int nRanks, int mostPerGroup) const { return nRanks_ == nRanks && mostPerGroup_ == mostPerGroup; }

 private:
  int nRanks_;
  int mostPerGroup_;
  int perGroup_;
  std::vector<int> turnOfDistance_;  ///< by distance between groups
};

}  // namespace tutti::comm
