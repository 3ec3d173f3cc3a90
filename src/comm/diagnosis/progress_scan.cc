#include "comm/diagnosis/progress_scan.h"

#include <utility>

#include "comm/connect/channels.h"
#include "proxy/task.h"

namespace tutti::comm {

namespace {

std::uint64_t workOf(const proxy::ProgressTask* task) {
  if (task == nullptr) return 0;
  const proxy::TaskCounters counters = task->counters();
  return counters.posted + counters.done + counters.bytes;
}

}  // namespace

Result<MovementSweep> MovementSweep::create(const gpu::Device& device) {
  ASSIGN(CounterCopy copy, CounterCopy::create(device));
  return MovementSweep(std::move(copy));
}

void MovementSweep::reset() {
  step_ = Step::Idle;
  found_ = State::None;
}

void MovementSweep::list(const ChannelSet& channels) {
  ends_.clear();
  for (const ConnectedCounters& end : channels.allEnds()) {
    End& listed = ends_.emplace_back();
    listed.peer = end.peer;
    listed.place = counterPlace(end.fifos);
    listed.task = end.task;
  }
}

/// Whether there was anything left to copy in this pass.
bool MovementSweep::beginPortion(const HasLeft& hasLeft) {
  portion_.clear();
  std::vector<CounterPlace> places;
  for (; next_ < ends_.size() && places.size() < CounterCopy::kMostEnds; ++next_) {
    if (hasLeft && hasLeft(ends_[next_].peer)) continue;
    portion_.push_back(next_);
    places.push_back(ends_[next_].place);
  }
  if (places.empty()) return false;
  copy_.begin(places);
  copying_ = true;
  return true;
}

/// Whether anything in it has moved since the first pass.
bool MovementSweep::takePortion() {
  bool moved = false;
  for (std::size_t i = 0; i < portion_.size(); ++i) {
    End& end = ends_[portion_[i]];
    const CounterValues values = copy_.values(i);
    const std::uint64_t work = workOf(end.task);
    if (step_ == Step::Second) {
      moved |= end.seen && (values != end.values || work != end.work);
      continue;
    }
    end.seen = true;
    end.values = values;
    end.work = work;
  }
  return moved;
}

/// One portion, or the end of a pass.
void MovementSweep::pass(Time now, const proxy::ProgressTask* collNet, const HasLeft& hasLeft) {
  if (beginPortion(hasLeft)) return;
  const std::uint64_t work = workOf(collNet);
  if (step_ == Step::Second) {
    found_ = work != collNetWork_ ? State::Moves : State::Still;
    step_ = Step::Idle;
    return;
  }
  step_ = Step::Between;
  firstOver_ = now;
  collNetWork_ = work;
}

MovementSweep::State MovementSweep::follow(Time now, const ChannelSet& channels, const proxy::ProgressTask* collNet,
                                           const HasLeft& hasLeft, milliseconds apart) {
  // Also one that reset() has made useless: its memory is needed.
  if (copying_) {
    const CounterCopy::State state = copy_.poll();
    if (state == CounterCopy::State::UnderWay) return found_ == State::None ? State::UnderWay : found_;
    copying_ = false;
    if (state != CounterCopy::State::Done) {
      reset();  // the watch finds out why
    } else if (step_ != Step::Idle && takePortion()) {
      found_ = State::Moves;
      step_ = Step::Idle;
    }
  }
  if (found_ != State::None) return found_;
  if (step_ == Step::Idle) {
    list(channels);
    next_ = 0;
    step_ = Step::First;
  } else if (step_ == Step::Between) {
    if (now - firstOver_ < apart) return State::UnderWay;
    next_ = 0;
    step_ = Step::Second;
  }
  pass(now, collNet, hasLeft);
  return found_ == State::None ? State::UnderWay : found_;
}

}  // namespace tutti::comm
