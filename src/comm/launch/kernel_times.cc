#include "comm/launch/kernel_times.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "trace/on.h"
#include "trace/session.h"

namespace tutti::comm {

namespace {

/// Between two launches that are timed, in nanoseconds.
constexpr std::uint64_t kLeast = 4'000'000;
/// After which an anchor is too old: times are told in milliseconds as a float, which must not lose microseconds.
constexpr std::uint64_t kLongest = 8'000'000'000;
/// What the launching thread spends on an anchor at most.
constexpr milliseconds kAnchorBound{20};

}  // namespace

void placeChannels(std::span<trace::Record> channels, trace::Record& whole, std::uint64_t asked, std::uint64_t now) {
  if (channels.empty()) return;
  std::uint64_t first = UINT64_MAX;
  std::uint64_t last = 0;
  for (const trace::Record& channel : channels) {
    first = std::min(first, channel.begin);
    last = std::max(last, channel.end);
  }
  const bool hostsClock = first >= asked && last <= now;
  if (hostsClock) {
    whole.begin = std::min(whole.begin, first);
    whole.end = std::max(whole.end, last);
    return;
  }
  for (trace::Record& channel : channels) {
    channel.begin = std::min(channel.begin - first + whole.begin, whole.end);
    channel.end = std::min(channel.end - first + whole.begin, whole.end);
  }
}

void KernelTimes::heed(Status status) {
  if (status.ok()) return;
  given_ = true;
  begun_ = false;
  info(kProfile, "The trace goes on without the times of kernels on device {}: {}", device_->ordinal(),
       lastErrorText());
}

/// The moment lies between two looks at the host's clock; of some tries the quickest is taken.
Result<bool> KernelTimes::anchor() {
  constexpr int kTries = 4;
  const Deadline deadline = Deadline::in(kAnchorBound);
  std::uint64_t quickest = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    ASSIGN(gpu::Event moment, gpu::Event::createTimed(*device_));
    const std::uint64_t before = trace::now();
    TRY(moment.record(own_->get()));
    ASSIGN(const bool came, moment.doneWithin(deadline.remaining()));
    if (!came) break;
    const std::uint64_t after = trace::now();
    if (after - before >= quickest) continue;
    quickest = after - before;
    anchor_ = std::move(moment);
    anchoredAt_ = before + (after - before) / 2;
  }
  if (quickest != UINT64_MAX) {
    retries_ = {};
    return true;
  }
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::uint64_t now = trace::now();
  retries_.missed(now);
  info(kProfile,
       "Device {} did not say its time within {} ms, as it is busy: its kernels have no times in the trace until it is "
       "asked again, in {} s",
       device_->ordinal(), kAnchorBound.count(), (retries_.next() - now) / kSecond);
  return false;
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

Result<bool> KernelTimes::prepare() {
  if (!own_) {
    ASSIGN(own_, gpu::Stream::create(*device_));
  }
  const std::uint64_t now = trace::now();
  if (anchor_ && (first_ != next_ || now - anchoredAt_ <= kLongest)) return true;
  if (!retries_.due(now)) return false;
  return anchor();
}

Status KernelTimes::stamp(Timed& one, std::span<const PreparedLaunch> launches) {
  one.stamped.clear();
  std::size_t stamps = 0;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const PreparedLaunch& launch = launches[i];
    if (launch.args == nullptr || launch.args->stamps != nullptr) continue;
    const std::size_t each = device::stampsOfChannel(launch.args->nWorks, launch.shape.func == device::Func::SendRecv);
    one.stamped.push_back({i, stamps, launch.args->firstChannel, launch.grid, each});
    stamps += launch.grid * each;
  }
  if (stamps == 0) return {};
  if (one.stamps == nullptr || one.stamps->room() < stamps) {
    ASSIGN(one.stamps, pool_->take(*device_, stamps));
  } else {
    one.stamps->clear();
  }
  for (const Stamped& stamped : one.stamped) {
    launches[stamped.launch].args->stamps = one.stamps->onDevice() + stamped.first;
  }
  return {};
}

std::vector<trace::Record> KernelTimes::channelsOf(const Timed& one) {
  std::vector<trace::Record> records;
  for (const Stamped& stamped : one.stamped) {
    for (unsigned channel = 0; channel < stamped.channels; ++channel) {
      trace::Record record{};
      record.kind = trace::Kind::Kernel;
      record.comm = one.comm;
      record.number = one.number + static_cast<std::uint32_t>(stamped.launch);
      record.begin = UINT64_MAX;
      record.a = stamped.firstChannel + channel;
      for (std::size_t i = 0; i < stamped.each; ++i) {
        const device::Stamp stamp = one.stamps->read(stamped.first + channel * stamped.each + i);
        if (stamp.begin == 0 || stamp.end == 0) continue;
        record.begin = std::min(record.begin, stamp.begin);
        record.end = std::max(record.end, stamp.end);
      }
      if (record.end != 0) records.push_back(record);
    }
  }
  return records;
}

void KernelTimes::write(const Timed& one, trace::Record whole) {
  std::vector<trace::Record> channels = channelsOf(one);
  placeChannels(channels, whole, one.asked, trace::now());
  trace::write(whole);
  for (const trace::Record& channel : channels) trace::write(channel);
}

Status KernelTimes::beginOne(CUstream stream, std::span<const PreparedLaunch> launches) {
  ASSIGN(const bool anchored, prepare());
  if (!anchored) return {};
  Timed& one = timed_[next_ % kUnderWay];
  if (!one.before) {
    ASSIGN(one.before, gpu::Event::createTimed(*device_));
    ASSIGN(one.after, gpu::Event::createTimed(*device_));
  }
  TRY(stamp(one, launches));
  one.asked = trace::now();
  TRY(one.before->record(stream));
  begun_ = true;
  return {};
}

void KernelTimes::begin(CUstream stream, std::span<const PreparedLaunch> launches) {
  const std::lock_guard lock(mutex_);
  begun_ = false;
  const std::uint64_t now = trace::now();
  if (given_ || now - lastBegin_ < kLeast) return;
  lastBegin_ = now;
  const ErrorsAsInfo harmless;
  Status status = harvestAll();
  if (status.ok() && next_ - first_ < kUnderWay) status = beginOne(stream, launches);
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
    write(one, record);
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
