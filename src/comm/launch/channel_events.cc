#include "comm/launch/channel_events.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/threads/shortage.h"
#include "comm/launch/stamps.h"
#include "plugin/profiler.h"

namespace tutti::comm {

namespace {

/// Between two looks: short while something happens, then longer and longer. Kernels say themselves when they worked,
/// so looking often gains little, and takes time from what the processors are there for: at 2 ms four ranks on two
/// processors lost 10 % of an operation over TCP (docs/measurements/profiling.md).
constexpr std::chrono::microseconds kSoon{8000};
constexpr std::chrono::microseconds kLate{16000};
/// Looks without anything under way before it sleeps for good: to be woken costs who launches more than they do.
constexpr int kIdleLooks = 8;

}  // namespace

StampedLaunch::StampedLaunch() = default;
StampedLaunch::~StampedLaunch() = default;

ChannelEvents::ChannelEvents() : pool_(std::make_shared<StampPool>()) {}

Result<std::shared_ptr<StampedLaunch>> ChannelEvents::take(const gpu::Device& device, std::size_t stamps) {
  std::shared_ptr<StampedLaunch> launched;
  {
    const std::lock_guard lock(incomingMutex_);
    if (closed_) return fail(ncclInternalError, "Stamps were asked for by a communicator that has ended");
    if (!thread_.running()) {
      ASSIGN(thread_, Thread::start("tutti-channels", [this] { throughShortages([this] { run(); }); }));
    }
    if (auto& spare = spare_[StampPool::roomFor(stamps)]; !spare.empty()) {
      launched = std::move(spare.back());
      spare.pop_back();
    }
  }
  if (launched == nullptr) {
    launched = std::make_shared<StampedLaunch>();
    ASSIGN(launched->stamps, pool_->take(device, stamps));
  }
  return launched;
}

void ChannelEvents::expect(std::shared_ptr<StampedLaunch> launched) {
  bool wake = false;
  {
    const std::lock_guard lock(incomingMutex_);
    if (closed_) return;
    incoming_.push_back(std::move(launched));
    wake = sleeps_;
  }
  if (wake) wake_.notify_one();
}

void ChannelEvents::tellBeforeReplay(StampedLaunch& launched) {
  const std::lock_guard lock(mutex_);
  lookAtAll();
  // What an abort has ended, perhaps before it began, is not over.
  const auto left =
      std::find_if(underWay_.begin(), underWay_.end(), [&](const auto& one) { return one.get() == &launched; });
  if (left != underWay_.end()) {
    look(launched);
    giveUp(launched);
    underWay_.erase(left);
  }
  launched.stamps->clear();
  launched.channels.clear();
  launched.over = 0;
}

void ChannelEvents::begin(StampedLaunch& launched, ExpectedChannel& channel, std::uint64_t when) {
  plugin::Event event{};
  event.type = ncclProfileKernelCh;
  event.parentObj = channel.parent;
  event.kernelCh.channelId = static_cast<std::uint8_t>(channel.channel);
  event.kernelCh.pTimer = when;
  channel.handle = launched.sink->start(event);
  channel.stage = ExpectedChannel::Stage::Works;
}

void ChannelEvents::end(StampedLaunch& launched, ExpectedChannel& channel, std::uint64_t when) {
  plugin::EventStateArgs args{};
  args.kernelCh.pTimer = when;
  launched.sink->state(channel.handle, ncclProfilerKernelChStop, &args);
  launched.sink->stop(channel.handle);
  channel.stage = ExpectedChannel::Stage::Over;
  ++launched.over;
}

bool ChannelEvents::look(StampedLaunch& launched) {
  bool any = false;
  for (ExpectedChannel& channel : launched.channels) {
    if (channel.stage == ExpectedChannel::Stage::Over) {
      any = true;
      continue;
    }
    const device::Stamp stamp = launched.stamps->read(channel.stamp);
    if (stamp.begin == 0) continue;
    any = true;
    if (channel.stage == ExpectedChannel::Stage::Waits) begin(launched, channel, stamp.begin);
    if (stamp.end != 0) end(launched, channel, stamp.end);
  }
  return any;
}

/// Kernels of a communicator run one after the other: where the first has not begun, no other has, as a rule.
bool ChannelEvents::lookAtAll() {
  takeIncoming();
  bool any = false;
  for (const auto& launched : underWay_) {
    if (!look(*launched)) break;
    any = true;
  }
  for (; !underWay_.empty() && underWay_.front()->over == underWay_.front()->channels.size(); underWay_.pop_front()) {
    if (underWay_.front().use_count() == 1) putAway(underWay_.front());
  }
  return any;
}

/// Nobody else has it: who launched it looks at it no more once it was expected.
void ChannelEvents::putAway(const std::shared_ptr<StampedLaunch>& launched) {
  launched->sink.reset();
  launched->channels.clear();
  launched->over = 0;
  launched->stamps->clear();
  const std::lock_guard lock(incomingMutex_);
  spare_[launched->stamps->room()].push_back(launched);
}

void ChannelEvents::giveUp(StampedLaunch& launched) {
  for (ExpectedChannel& channel : launched.channels) {
    if (channel.stage == ExpectedChannel::Stage::Works) launched.sink->stop(channel.handle);
    channel.stage = ExpectedChannel::Stage::Over;
  }
}

/// `mutex_` is held. One by one, for memory may run out in between.
void ChannelEvents::takeIncoming() {
  const std::lock_guard lock(incomingMutex_);
  for (; !incoming_.empty(); incoming_.pop_front()) underWay_.push_back(incoming_.front());
}

bool ChannelEvents::sleep(bool idle, std::chrono::microseconds most) {
  std::unique_lock lock(incomingMutex_);
  sleeps_ = idle;
  const auto ready = [&] { return closed_ || (idle && !incoming_.empty()); };
  if (idle) {
    wake_.wait(lock, ready);
  } else {
    wake_.wait_for(lock, most, ready);
  }
  sleeps_ = false;
  return !closed_;
}

void ChannelEvents::run() {
  std::chrono::microseconds pause = kSoon;
  int idle = kIdleLooks;
  while (sleep(idle >= kIdleLooks, pause)) {
    const std::lock_guard lock(mutex_);
    pause = lookAtAll() ? kSoon : std::min(pause * 2, kLate);
    idle = underWay_.empty() ? idle + 1 : 0;
  }
}

void ChannelEvents::close() {
  Thread ending;
  {
    const std::lock_guard lock(incomingMutex_);
    closed_ = true;
    std::swap(ending, thread_);
  }
  wake_.notify_one();
  ending.join();
  const std::lock_guard lock(mutex_);
  takeIncoming();
  for (const auto& launched : underWay_) {
    look(*launched);
    giveUp(*launched);
  }
  underWay_.clear();
  {
    const std::lock_guard incoming(incomingMutex_);
    spare_.clear();
  }
  pool_->close();
}

}  // namespace tutti::comm
