#include "proxy/step_events.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace tutti::proxy {

namespace {

/// By stage, 0 to 2.
constexpr std::array<ncclProfilerEventState_v6_t, 3> kSendStates{
    ncclProfilerProxyStepSendGPUWait, ncclProfilerProxyStepSendPeerWait_v4, ncclProfilerProxyStepSendWait};
constexpr std::array<ncclProfilerEventState_v6_t, 3> kRecvStates{
    ncclProfilerProxyStepRecvWait, ncclProfilerProxyStepRecvFlushWait, ncclProfilerProxyStepRecvGPUWait};
constexpr std::size_t kOver = 3;

/// That operations have been taken up, for those who want to hear of the host thread itself.
void tellAppended(const std::vector<ExpectedSteps>& taken) {
  if ((plugin::eventMask() & ncclProfileProxyCtrl) == 0) return;
  const auto heard = [](const ExpectedSteps& one) { return one.sink != nullptr; };
  const auto first = std::find_if(taken.begin(), taken.end(), heard);
  if (first == taken.end()) return;
  plugin::Event event{};
  event.type = ncclProfileProxyCtrl;
  void* const handle = first->sink->start(event);
  plugin::EventStateArgs args{};
  first->sink->state(handle, ncclProfilerProxyCtrlAppend, &args);
  args.proxyCtrl.appendedProxyOps = static_cast<int>(std::count_if(taken.begin(), taken.end(), heard));
  first->sink->state(handle, ncclProfilerProxyCtrlAppendEnd, &args);
  first->sink->stop(handle);
}

}  // namespace

void StepEvents::expect(const ExpectedSteps& operation) {
  if (operation.steps == 0) return;
  const std::lock_guard lock(mutex_);
  if (closed_ || forgotten_) return;
  expected_.push_back(operation);
  pending_.store(true, std::memory_order_release);
}

void StepEvents::forget() {
  const std::lock_guard lock(mutex_);
  forgotten_ = true;
  pending_.store(true, std::memory_order_release);
}

void StepEvents::take() {
  std::vector<ExpectedSteps> taken;
  bool forgotten = false;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(expected_);
    forgotten = forgotten_;
    pending_.store(false, std::memory_order_relaxed);
  }
  if (told_ == nullptr) {
    told_ = std::make_unique<Told>();
    told_->end = told_->begun = told_->over = told_->reachedEnd = next_;
    told_->stages.fill(next_);
  }
  if (forgotten) lost_ = true, endAll();
  if (lost_) return;
  for (const ExpectedSteps& one : taken) {
    Operation& operation = told_->operations.emplace_back(Operation{one, told_->end});
    told_->end += one.steps;
    begin(operation);
  }
  tellAppended(taken);
}

void StepEvents::begin(Operation& operation) const {
  const ExpectedSteps& what = operation.what;
  if (what.sink == nullptr || (what.mask & ncclProfileProxyOp) == 0) return;
  plugin::Event event{};
  event.type = ncclProfileProxyOp;
  event.parentObj = what.parent;
  event.rank = what.rank;
  event.proxyOp.pid = ::getpid();
  event.proxyOp.channelId = static_cast<std::uint8_t>(what.channel);
  event.proxyOp.peer = what.peer;
  event.proxyOp.nSteps = static_cast<int>(what.steps);
  event.proxyOp.chunkSize = static_cast<int>(what.chunkBytes);
  event.proxyOp.isSend = what.sends ? 1 : 0;
  operation.handle = what.sink->start(event);
}

StepEvents::Operation& StepEvents::operationOf(std::uint64_t step) const {
  return *std::find_if(told_->operations.begin(), told_->operations.end(),
                       [step](const Operation& one) { return step - one.first < one.what.steps; });
}

void StepEvents::beginStep() {
  const std::uint64_t number = told_->begun++;
  const Operation& operation = operationOf(number);
  const ExpectedSteps& what = operation.what;
  Step& step = told_->steps[number % kMost];
  step.handle = nullptr;
  if (what.sink == nullptr) return;
  if (number == operation.first) {
    plugin::EventStateArgs none{};
    what.sink->state(operation.handle, ncclProfilerProxyOpInProgress_v4, &none);
  }
  if ((what.mask & ncclProfileProxyStep) == 0) return;
  plugin::Event event{};
  event.type = ncclProfileProxyStep;
  event.parentObj = operation.handle;
  event.rank = what.rank;
  event.proxyStep.step = static_cast<int>(number - operation.first);
  step.handle = what.sink->start(event);
  if ((what.mask & ncclProfileNetPlugin) != 0) step.request.set(what.sink, step.handle, what.rank);
}

void StepEvents::tellStages(const StepStages& reached) {
  for (std::size_t stage = 0; stage < kOver; ++stage) {
    std::uint64_t& step = told_->stages[stage];
    for (; step != told_->begun && reached[stage] > step; ++step) {
      const Operation& operation = operationOf(step);
      if (operation.what.sink == nullptr || operation.handle == nullptr) continue;
      const Step& its = told_->steps[step % kMost];
      plugin::EventStateArgs args{};
      args.proxyStep.transSize = stage == 0 ? 0 : its.bytes;
      operation.what.sink->state(its.handle, (operation.what.sends ? kSendStates : kRecvStates)[stage], &args);
    }
  }
}

void StepEvents::endStep() {
  Step& step = told_->steps[told_->over % kMost];
  Operation& operation = told_->operations.front();
  ++told_->over;
  step.request.clear();
  if (operation.what.sink != nullptr) operation.what.sink->stop(std::exchange(step.handle, nullptr));
  if (told_->over - operation.first != operation.what.steps) return;
  if (operation.what.sink != nullptr) operation.what.sink->stop(operation.handle);
  told_->operations.pop_front();
}

void StepEvents::follow(const StepStages& reached) {
  if (lost_) return;
  Told& told = *told_;
  if (reached == told.reached && told.reachedEnd == told.end) return;
  const std::uint64_t over = reached[kOver];
  // What a kernel has done was expected before, but perhaps after look().
  if (static_cast<std::int64_t>(over - told.end) > 0 && pending_.load(std::memory_order_acquire)) take();
  if (static_cast<std::int64_t>(over - told.end) > 0) {
    // Of a connection that was used while nobody counted.
    info(kProxy, "Profiler: a connection has moved steps that no operation was known for; its events end here");
    lost_ = true;
    return endAll();
  }
  told.reached = reached;
  told.reachedEnd = told.end;
  const auto moreAreOver = [&] { return static_cast<std::int64_t>(over - told.over) > 0; };
  for (;;) {
    while (told.begun != told.end && told.begun - told.over < window_) beginStep();
    tellStages(reached);
    if (!moreAreOver()) return;
    while (told.over != told.begun && moreAreOver()) endStep();
  }
}

void* StepEvents::requestOf(std::uint64_t step) const {
  return lost_ ? nullptr : &told_->steps[step % kMost].request;
}

void StepEvents::endAll() {
  while (!told_->operations.empty()) {
    Operation& operation = told_->operations.front();
    if (told_->over != told_->begun && told_->over - operation.first < operation.what.steps) {
      endStep();
      continue;
    }
    if (operation.what.sink != nullptr) operation.what.sink->stop(operation.handle);
    told_->operations.pop_front();
  }
}

void StepEvents::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    expected_.clear();
  }
  if (told_ != nullptr) endAll();
  lost_ = true;
}

}  // namespace tutti::proxy
