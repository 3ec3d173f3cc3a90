#include "softgpu/device/stream.h"

#include "softgpu/device/capture.h"
#include "softgpu/device/engine.h"
#include "softgpu/device/machine.h"
#include "softgpu/device/tasks.h"
#include "softgpu/device/waiting.h"

namespace tutti::softgpu {

Stream::Stream(Context& context, unsigned flags, int priority) : context_(context), flags_(flags), priority_(priority) {
  static std::atomic<std::uint64_t> ids{0};
  id_ = ids.fetch_add(1) + 1;
}

std::vector<After> Stream::orderAmongBlocking() const {
  std::vector<After> after;
  const auto add = [&after](const std::shared_ptr<Stream>& other) {
    if (!other->idle()) after.push_back({other, other->submitted.load()});
  };
  const bool isLegacy = this == context_.legacy().get();
  if (!isLegacy) {
    if (!nonBlocking() && context_.legacy() != nullptr) add(context_.legacy());
    return after;
  }
  for (const auto& other : context_.liveStreams()) {
    if (!other->nonBlocking()) add(other);
  }
  return after;
}

void Stream::append(std::unique_ptr<Task> task) {
  // First what can fail, for want of a thread: nobody may wait for a task that no engine will ever see.
  Engine& engine = context_.device().engine();
  queue.push_back({std::move(task), orderAmongBlocking()});
  submitted.fetch_add(1, std::memory_order_release);
  if (!active) {
    active = true;
    engine.adopt(shared_from_this());
  }
  engine.wake();
}

CUresult Stream::submit(const Operation& operation) {
  if (const CUresult error = context_.error(); error != CUDA_SUCCESS) return error;
  std::lock_guard<std::mutex> guard(machine().lock);
  const auto* wait = std::get_if<WaitOperation>(&operation);
  if (capture == nullptr && wait != nullptr && wait->event->capture != nullptr) return joinCapture(*this, *wait->event);
  if (capture != nullptr) return captureOperation(*this, operation);
  if (this == context_.legacy().get()) {
    for (const auto& other : context_.liveStreams()) {
      if (other->capture == nullptr || other->nonBlocking()) continue;
      other->capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  append(makeTask(operation, context_));
  return CUDA_SUCCESS;
}

void Stream::waitFor(std::uint64_t sequence) {
  if (waitAwake([&] { return completed.load(std::memory_order_acquire) >= sequence; })) return;
  std::unique_lock<std::mutex> guard(machine().lock);
  ++waiters;
  finished.wait(guard, [&] { return completed.load(std::memory_order_acquire) >= sequence; });
  --waiters;
}

CUresult Stream::synchronize() {
  waitFor(submitted.load(std::memory_order_acquire));
  return context_.error();
}

}  // namespace tutti::softgpu
