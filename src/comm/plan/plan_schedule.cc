#include "comm/plan/plan_schedule.h"

#include <algorithm>
#include <cstddef>

namespace tutti::comm {

namespace {

int groupSize(int n, int most) {
  for (int d = std::min(n, most); d > 1; --d) {
    if (n % d == 0) return d;
  }
  return 1;
}

}  // namespace

MessageSchedule::MessageSchedule(int nRanks, int mostPerGroup)
    : nRanks_(nRanks),
      mostPerGroup_(mostPerGroup),
      perGroup_(groupSize(nRanks, mostPerGroup)),
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

}  // namespace tutti::comm
