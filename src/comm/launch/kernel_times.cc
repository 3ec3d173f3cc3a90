#include "comm/launch/kernel_times.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "trace/session.h"

namespace tutti::comm {

namespace {

/// Between two launches that are timed, in nanoseconds.
constexpr std::uint64_t kLeast = 4'000'000;
/// After which an anchor is too old: times are told in milliseconds as a float, which must not lose microseconds.
constexpr std::uint64_t kLongest = 8'000'000'000;
constexpr std::chrono::milliseconds kAnchorBound{20};

}  // namespace

void KernelTimes::heed(Status status) {
  if (status.ok()) return;
  given_ = true;
  begun_ = false;
  info(kProfile, "The trace goes on without the times of kernels on device {}: {}", device_->ordinal(),
       lastErrorText());
}

/// The moment lies between two looks at the host's clock; of some tries the quickest is taken.
Status KernelTimes::anchor() {
  constexpr int kTries = 4;
  std::uint64_t quickest = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    ASSIGN(gpu::Event moment, gpu::Event::createTimed(*device_));
    const std::uint64_t before = trace::now();
    TRY(moment.record(own_->get()));
    TRY(moment.wait(nullptr, kAnchorBound));
    const std::uint64_t after = trace::now();
    if (after - before >= quickest) continue;
    quickest = after - before;
    anchor_ = std::move(moment);
    anchoredAt_ = before + (after - before) / 2;
  }
  return {};
}

/// Nothing begins before it was asked for, and nothing that has ended ends in the future: what says so shows how wrong
/// the anchor is.
void KernelTimes::correct(const Timed& one, double began, double ended) {
  const std::uint64_t first = at(began);
  if (first < one.asked) anchoredAt_ += one.asked - first;
  const std::uint64_t last = at(ended);
  const std::uint64_t now = trace::now();
  if (last > now) anchoredAt_ -= last - now;
}

std::uint64_t KernelTimes::at(double seconds) const {
  constexpr double kNano = 1e9;
  return anchoredAt_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(seconds * kNano));
}

Status KernelTimes::prepare() {
  if (!own_) {
    ASSIGN(own_, gpu::Stream::create(*device_));
    return anchor();
  }
  return first_ == next_ && trace::now() - anchoredAt_ > kLongest ? anchor() : Status();
}

Status KernelTimes::beginOne(CUstream stream) {
  TRY(prepare());
  Timed& one = timed_[next_ % kUnderWay];
  if (!one.before) {
    ASSIGN(one.before, gpu::Event::createTimed(*device_));
    ASSIGN(one.after, gpu::Event::createTimed(*device_));
  }
  one.asked = trace::now();
  TRY(one.before->record(stream));
  begun_ = true;
  return {};
}

void KernelTimes::begin(CUstream stream) {
  const std::lock_guard lock(mutex_);
  begun_ = false;
  const std::uint64_t now = trace::now();
  if (given_ || now - lastBegin_ < kLeast) return;
  lastBegin_ = now;
  const ErrorsAsInfo harmless;
  Status status = harvestAll();
  if (status.ok() && next_ - first_ < kUnderWay) status = beginOne(stream);
  heed(status);
}

Status KernelTimes::endOne(CUstream stream) {
  TRY(timed_[next_ % kUnderWay].after->record(stream));
  ++next_;
  return {};
}

void KernelTimes::end(CUstream stream, std::uint16_t comm, std::uint32_t number, std::size_t launches) {
  const std::lock_guard lock(mutex_);
  if (!begun_) return;
  begun_ = false;
  Timed& one = timed_[next_ % kUnderWay];
  one.comm = comm;
  one.number = number;
  one.launches = launches;
  const ErrorsAsInfo harmless;
  heed(endOne(stream));
}

Status KernelTimes::harvestAll() {
  for (; first_ != next_; ++first_) {
    Timed& one = timed_[first_ % kUnderWay];
    ASSIGN(const bool done, one.after->done());
    if (!done) return {};
    ASSIGN(const double began, one.before->secondsSince(*anchor_));
    ASSIGN(const double ended, one.after->secondsSince(*anchor_));
    correct(one, began, ended);
    trace::Record record{};
    record.kind = trace::Kind::Kernel;
    record.comm = one.comm;
    record.number = one.number;
    record.begin = at(began);
    record.end = at(ended);
    record.a = trace::kWholeKernel;
    record.b = one.launches;
    trace::write(record);
  }
  return {};
}

void KernelTimes::harvest() {
  const std::lock_guard lock(mutex_);
  if (given_ || first_ == next_) return;
  const ErrorsAsInfo harmless;
  heed(harvestAll());
}

}  // namespace tutti::comm
