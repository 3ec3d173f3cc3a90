#include "comm/plan_schedule.h"

#include <algorithm>
#include <cstddef>

namespace tutti {

namespace {

constexpr int kMaxPerGroup = 8;

/// `wanted` where it fits, else the largest divisor of n up to kMaxPerGroup.
int groupSize(int n, int wanted) {
  if (wanted > 0 && n % wanted == 0) return wanted;
  for (int d = std::min(n, kMaxPerGroup); d > 1; --d) {
    if (n % d == 0) return d;
  }
  return 1;
}

}  // namespace

MessageSchedule::MessageSchedule(int nRanks, int ranksPerGroup)
    : nRanks_(nRanks), perGroup_(groupSize(nRanks, ranksPerGroup)),
      turnOfDistance_(static_cast<std::size_t>(nRanks / perGroup_)) {
  const int groups = nRanks / perGroup_;
  int power = 1;
  while (power < groups) power *= 2;
  // x (x + 1) / 2 modulo a power of two takes every value once for x = 0..power-1.
  int turn = 0;
  int distance = 0;
  for (int x = 0; x < power; ++x) {
    distance = (distance + x) % power;
    if (distance < groups) turnOfDistance_[static_cast<std::size_t>(distance)] = turn++;
  }
}

int MessageSchedule::roundOf(int from, int to) const {
  const int groups = nRanks_ / perGroup_;
  const int between = (to / perGroup_ - from / perGroup_ + groups) % groups;
  const int within = (to % perGroup_ - from % perGroup_ + perGroup_) % perGroup_;
  return turnOfDistance_[static_cast<std::size_t>(between)] * perGroup_ + within;
}

}  // namespace tutti
