#include "comm/diagnosis/counter_snapshot.h"

#include <utility>

#include "comm/connect/channels.h"
#include "comm/connect/used_links.h"
#include "proxy/task.h"

namespace tutti::comm {

Result<std::unique_ptr<CounterReader>> CounterReader::create(const gpu::Device& device) {
  ASSIGN(CounterCopy copy, CounterCopy::create(device));
  return std::unique_ptr<CounterReader>(new CounterReader(std::move(copy)));
}

void CounterReader::list(const ChannelSet& channels, const LaunchNote& note, int nRanks,
                         const std::function<bool(int rank)>& hasLeft) {
  places_.clear();
  tasks_.clear();
  listed_.clear();
  leftOut_ = 0;
  for (const UsedLink& used : linksUsedBy(note, channels.neighbours(), nRanks)) {
    const bool left = hasLeft && hasLeft(used.link.peer);
    for (ConnectedEnd& end : channels.endsOf(used.link)) {
      if (listed_.size() == kMostEnds) {
        ++leftOut_;
        continue;
      }
      if (!left) places_.push_back(counterPlace(end.fifos));
      tasks_.push_back(left ? nullptr : end.task);
      EndReading reading;
      reading.channel = end.channel;
      reading.peer = end.peer;
      reading.kind = used.link.kind;
      reading.direction = end.direction;
      reading.protocol = used.protocol;
      reading.transport = std::move(end.transport);
      reading.left = left;
      listed_.push_back(std::move(reading));
    }
  }
}

void CounterReader::begin(const ChannelSet& channels, const LaunchNote& note, int nRanks,
                          const std::function<bool(int rank)>& hasLeft) {
  if (std::exchange(underWay_, true)) return;
  list(channels, note, nRanks, hasLeft);
  copy_.begin(places_);
}

CounterReader::State CounterReader::poll() {
  const State state = copy_.poll();
  if (state == State::UnderWay) return state;
  underWay_ = false;
  if (std::exchange(forgotten_, false)) return State::None;
  if (state != State::Done) return state;
  ends_ = std::move(listed_);
  std::size_t place = 0;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i].left) continue;
    const CounterValues values = copy_.values(place++);
    const auto protocol = static_cast<std::size_t>(ends_[i].protocol);
    ends_[i].produced = values.tail[protocol];
    ends_[i].consumed = values.head[protocol];
    if (tasks_[i] == nullptr) continue;
    ends_[i].task = tasks_[i]->describe();
    ends_[i].starves = tasks_[i]->starves(protocol);
  }
  return state;
}

}  // namespace tutti::comm
