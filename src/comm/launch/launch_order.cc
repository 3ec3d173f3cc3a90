#include "comm/launch/launch_order.h"

#include <algorithm>
#include <utility>

#include "gpu/capture.h"
#include "gpu/stream.h"

namespace tutti::comm {

namespace {

/// Captures that may go on side by side before their launches lose their order across streams.
constexpr std::size_t kMarks = 8;

}  // namespace

Result<std::shared_ptr<LaunchOrder>> LaunchOrder::create(const gpu::Device& device, Rules rules) {
  ASSIGN(gpu::Event last, gpu::Event::create(device));
  ASSIGN(gpu::Event join, gpu::Event::create(device));
  return std::shared_ptr<LaunchOrder>(new LaunchOrder(device, rules, std::move(last), std::move(join)));
}

LaunchOrder::CaptureMark* LaunchOrder::markOf(const gpu::CaptureState& capture) {
  const auto mark =
      std::find_if(marks_.begin(), marks_.end(), [&](const CaptureMark& m) { return m.id == capture.id; });
  return mark == marks_.end() ? nullptr : &*mark;
}

/// `main`, which is captured, waits for what is in its graph already, or for what is outside.
Status LaunchOrder::beforeCaptured(const gpu::CaptureState& capture, CUstream main) {
  if (const CaptureMark* known = markOf(capture)) return rules_.within ? known->last.waitOn(main) : Status();
  ASSIGN(gpu::Event last, gpu::Event::create(*device_));
  if (marks_.size() == kMarks) marks_.erase(marks_.begin());
  marks_.push_back({capture.id, std::move(last)});
  return rules_.mix ? gpu::waitAtReplay(*device_, capture, main, last_) : Status();
}

Status LaunchOrder::before(const gpu::CaptureState& capture, std::span<const CUstream> streams) {
  const CUstream main = streams.back();
  for (const CUstream other : streams.first(streams.size() - 1)) {
    if (other == main) continue;
    TRY(join_.record(other));
    TRY(join_.waitOn(main));
  }
  if (capture.capturing) return beforeCaptured(capture, main);
  ASSIGN(const unsigned long long id, gpu::streamId(device_->driver(), main));
  const bool replaysBetween = rules_.mix && everCaptured_;
  const bool ordered = !replaysBetween && id != 0 && id == lastStream_;
  return ordered ? Status() : last_.waitOn(main);
}

Status LaunchOrder::afterBegin(CUstream main) {
  ASSIGN(lastStream_, gpu::streamId(device_->driver(), main));
  return {};
}

Status LaunchOrder::after(const gpu::CaptureState& capture, std::span<const CUstream> streams) {
  const CUstream main = streams.back();
  gpu::Event& mark = capture.capturing ? markOf(capture)->last : last_;
  if (capture.capturing && rules_.mix) TRY(gpu::recordAtReplay(*device_, capture, main, last_.get()));
  // Recorded now and not when the next launch finds another stream: the application may have destroyed this one then.
  TRY(mark.record(main));
  if (capture.capturing) {
    everCaptured_ = true;
  } else {
    ASSIGN(lastStream_, gpu::streamId(device_->driver(), main));
  }
  for (const CUstream other : streams.first(streams.size() - 1)) {
    if (other != main) TRY(mark.waitOn(other));
  }
  return {};
}

}  // namespace tutti::comm
