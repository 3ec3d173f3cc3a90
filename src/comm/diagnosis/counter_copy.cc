#include "comm/diagnosis/counter_copy.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "base/never_destroyed.h"

namespace tutti::comm {

namespace {

/// Keeps memory that a stuck device may still write to, for good.
void giveUp(std::unique_ptr<gpu::PinnedBuffer> memory) {
  static NeverDestroyed<std::vector<std::unique_ptr<gpu::PinnedBuffer>>> lost;
  static NeverDestroyed<std::mutex> mutex;
  const std::lock_guard lock(mutex.get());
  lost.get().push_back(std::move(memory));
}

}  // namespace

Result<CounterCopy> CounterCopy::create(const gpu::Device& device) {
  ASSIGN(gpu::PinnedBuffer words,
         gpu::PinnedBuffer::create(device, kMostEnds * 2 * device::kCountersBytes, "stall reports"));
  ASSIGN(gpu::Event done, gpu::Event::create(device));
  return CounterCopy(device, std::move(words), std::move(done));
}

CounterCopy::~CounterCopy() {
  if (words_ && state_ == State::UnderWay && poll() == State::UnderWay) giveUp(std::move(words_));
}

Status CounterCopy::copyAll(std::span<const CounterPlace> places) {
  ASSIGN(const gpu::ContextGuard guard, device_->enter());
  const gpu::Driver& driver = device_->driver();
  for (std::size_t i = 0; i < places.size(); ++i) {
    TRY(device_->check(driver.cuMemcpyDtoHAsync(at(i, 0), places[i].tail, device::kCountersBytes, device_->ownStream()),
                       "cuMemcpyDtoHAsync"));
    TRY(device_->check(driver.cuMemcpyDtoHAsync(at(i, 1), places[i].head, device::kCountersBytes, device_->ownStream()),
                       "cuMemcpyDtoHAsync"));
  }
  return done_.record(device_->ownStream());
}

void CounterCopy::begin(std::span<const CounterPlace> places) {
  if (state_ == State::UnderWay) return;
  state_ = copyAll(places.first(std::min(places.size(), kMostEnds))).ok() ? State::UnderWay : State::Failed;
}

CounterCopy::State CounterCopy::poll() {
  if (state_ == State::UnderWay) {
    const auto done = done_.done();
    if (!done.ok()) state_ = State::Failed;
    if (done.ok() && done.value()) state_ = State::Done;
  }
  return state_ == State::UnderWay ? state_ : std::exchange(state_, State::None);
}

CounterValues CounterCopy::values(std::size_t index) const {
  CounterValues values;
  for (std::size_t protocol = 0; protocol < device::kProtocols; ++protocol) {
    const std::size_t offset = protocol * sizeof(device::Counter);
    std::memcpy(&values.tail[protocol], at(index, 0) + offset, sizeof(std::uint64_t));
    std::memcpy(&values.head[protocol], at(index, 1) + offset, sizeof(std::uint64_t));
  }
  return values;
}

}  // namespace tutti::comm
