#include "differential/course.h"

#include <algorithm>
#include <utility>

namespace differential {
namespace {

constexpr std::size_t kMostKept = 4;  // recorded rounds that may come again, at a time

}  // namespace

Course::Course(std::uint64_t seed, const Layout& layout, Limits limits, std::size_t operations, int threads)
    : dice_(~seed), generator_(seed, layout, std::move(limits)), left_(operations), threads_(threads) {}

Course::Turn Course::makeTurn() {
  if (!kept_.empty() && dice_.chance(35)) {
    const std::size_t index = dice_.below(kept_.size());
    Turn again{kept_[index], dice_.chance(25)};
    if (again.last) kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(index));
    return again;
  }
  Turn turn{std::make_shared<const Round>(generator_.next()), true};
  if (turn.round->capture != Capture::None && kept_.size() < kMostKept) {
    turn.last = false;
    kept_.push_back(turn.round);
  }
  return turn;
}

std::optional<Course::Turn> Course::turn(std::size_t number) {
  const std::lock_guard lock(mutex_);
  while (number >= first_ + entries_.size()) {
    if (left_ == 0) return std::nullopt;
    entries_.push_back({makeTurn(), 0});
    left_ -= std::min(left_, entries_.back().turn.round->operations());
  }
  Entry& entry = entries_[number - first_];
  Turn turn = entry.turn;
  ++entry.asked;
  while (!entries_.empty() && entries_.front().asked == threads_) {
    entries_.pop_front();
    ++first_;
  }
  return turn;
}

}  // namespace differential
