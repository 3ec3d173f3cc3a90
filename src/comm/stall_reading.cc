#include "comm/stall_reading.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "base/never_destroyed.h"

namespace tutti {

namespace {

/// Keeps memory that a stuck device may still write to, for good.
void giveUp(std::unique_ptr<PinnedBuffer> memory) {
  static NeverDestroyed<std::vector<std::unique_ptr<PinnedBuffer>>> lost;
  static NeverDestroyed<std::mutex> mutex;
  const std::lock_guard lock(mutex.get());
  lost.get().push_back(std::move(memory));
}

}  // namespace

Result<std::unique_ptr<CounterReader>> CounterReader::create(const Device& device) {
  ASSIGN(PinnedBuffer words, PinnedBuffer::create(device, kMostEnds * kWords * sizeof(std::uint64_t), "stall reports"));
  ASSIGN(Event done, Event::create(device));
  return std::unique_ptr<CounterReader>(new CounterReader(device, std::move(words), std::move(done)));
}

CounterReader::~CounterReader() {
  if (state_ == State::UnderWay && poll() == State::UnderWay) giveUp(std::move(words_));
}

void CounterReader::list(const ChannelSet& channels, const LaunchNote& note, int nRanks,
                         const std::function<bool(int rank)>& hasLeft) {
  places_.clear();
  listed_.clear();
  leftOut_ = 0;
  for (const UsedLink& used : linksUsedBy(note, channels.neighbours(), nRanks)) {
    if (hasLeft && hasLeft(used.link.peer)) continue;
    for (ConnectedEnd& end : channels.endsOf(used.link)) {
      if (places_.size() == kMostEnds) {
        ++leftOut_;
        continue;
      }
      places_.push_back({reinterpret_cast<CUdeviceptr>(end.view.tailOf(used.protocol)),
                         reinterpret_cast<CUdeviceptr>(end.view.headOf(used.protocol)), end.task});
      EndReading reading;
      reading.channel = end.channel;
      reading.peer = end.peer;
      reading.direction = end.direction;
      reading.protocol = used.protocol;
      reading.transport = std::move(end.transport);
      listed_.push_back(std::move(reading));
    }
  }
}

Status CounterReader::copyAll() {
  ASSIGN(const ContextGuard guard, device_->enter());
  const Driver& driver = device_->driver();
  for (std::size_t i = 0; i < places_.size(); ++i) {
    std::byte* const to = words_->host() + i * kWords * sizeof(std::uint64_t);
    TRY(device_->check(driver.cuMemcpyDtoHAsync(to, places_[i].tail, sizeof(std::uint64_t), device_->ownStream()),
                       "cuMemcpyDtoHAsync"));
    TRY(device_->check(driver.cuMemcpyDtoHAsync(to + sizeof(std::uint64_t), places_[i].head, sizeof(std::uint64_t),
                                                device_->ownStream()),
                       "cuMemcpyDtoHAsync"));
  }
  return done_.record(device_->ownStream());
}

void CounterReader::begin(const ChannelSet& channels, const LaunchNote& note, int nRanks,
                          const std::function<bool(int rank)>& hasLeft) {
  if (state_ == State::UnderWay) return;
  list(channels, note, nRanks, hasLeft);
  state_ = copyAll().ok() ? State::UnderWay : State::Failed;
}

std::uint64_t CounterReader::word(std::size_t end, std::size_t which) const {
  std::uint64_t value = 0;
  std::memcpy(&value, words_->host() + (end * kWords + which) * sizeof(value), sizeof(value));
  return value;
}

CounterReader::State CounterReader::poll() {
  if (state_ == State::UnderWay) {
    const auto done = done_.done();
    if (!done.ok()) state_ = State::Failed;
    if (done.ok() && done.value()) state_ = State::Done;
  }
  const State state = state_;
  if (state == State::UnderWay || state == State::None) return state;
  state_ = State::None;
  if (state == State::Failed) return state;
  ends_ = std::move(listed_);
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    ends_[i].produced = word(i, 0);
    ends_[i].consumed = word(i, 1);
    if (places_[i].task != nullptr) ends_[i].task = places_[i].task->describe();
  }
  return state;
}

}  // namespace tutti
