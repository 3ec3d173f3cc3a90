#include "proxy/step_events.h"

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "base/log.h"
#include "plugin/event_mask.h"
#include "plugin/profiler.h"

namespace tutti::proxy {

namespace {

/// By stage, 0 to 2.
constexpr std::array<ncclProfilerEventState_v6_t, 3> kSendStates{
    ncclProfilerProxyStepSendGPUWait, ncclProfilerProxyStepSendPeerWait_v4, ncclProfilerProxyStepSendWait};
constexpr std::array<ncclProfilerEventState_v6_t, 3> kRecvStates{
    ncclProfilerProxyStepRecvWait, ncclProfilerProxyStepRecvFlushWait, ncclProfilerProxyStepRecvGPUWait};
constexpr std::size_t kOver = 3;

/// That so many operations have been taken up, for those who want to hear of the host thread itself. `sink`: null where
/// there are none.
void tellAppended(plugin::EventSink* sink, int operations) {
  if (sink == nullptr || (plugin::eventMask() & ncclProfileProxyCtrl) == 0) return;
  plugin::Event event{};
  event.type = ncclProfileProxyCtrl;
  void* const handle = sink->start(event);
  plugin::EventStateArgs args{};
  sink->state(handle, ncclProfilerProxyCtrlAppend, &args);
  args.proxyCtrl.appendedProxyOps = operations;
  sink->state(handle, ncclProfilerProxyCtrlAppendEnd, &args);
  sink->stop(handle);
}

/// The system takes 240 ns for an answer, and each operation needs one for each of its connections.
int ownProcess() {
  static const int kProcess = ::getpid();
  return kProcess;
}

}  // namespace

struct StepEvents::Operation {
  ExpectedSteps what;
  std::uint64_t first = 0;  ///< its first step
  void* handle = nullptr;
  std::uint64_t end() const { return first + what.steps; }
  bool heard() const { return what.sink != nullptr; }
};

struct StepEvents::Step {
  void* handle = nullptr;
  std::uint32_t bytes = 0;
  plugin::EventSink* sink = nullptr;  ///< of its operation; null: nobody hears of it
  bool sends = false;
  bool set = false;                 ///< `request` is
  std::uint64_t requested = ~0ULL;  ///< the step that the network was given `request` for
  plugin::NetEventParent request;
};

struct StepEvents::Told {
  std::deque<Operation> operations;       ///< whose steps are not all over, oldest first
  std::uint64_t end = 0;                  ///< of the last operation
  std::uint64_t begun = 0;                ///< steps that have begun
  std::uint64_t over = 0;                 ///< steps that are over
  std::array<std::uint64_t, 3> stages{};  ///< steps whose state of that stage was told
  std::array<Step, kMost> steps;
};

StepEvents::StepEvents(std::uint64_t first, std::uint32_t window) : next_(first), window_(window) {}

StepEvents::~StepEvents() {
  close();
}

/// The thread itself is told of what it takes up, whoever hears of that.
bool StepEvents::isHeard(const ExpectedSteps& operation) {
  if (operation.sink == nullptr) return false;
  return (operation.mask & ncclProfileProxyOp) != 0 || (plugin::eventMask() & ncclProfileProxyCtrl) != 0;
}

void StepEvents::expect(ExpectedSteps operation) {
  if (operation.steps == 0) return;
  const std::lock_guard lock(mutex_);
  if (closed_ || forgotten_) return;
  const bool heard = isHeard(operation);
  if (!awake_ && !heard) {
    passed_ += operation.steps;
    return;
  }
  awake_ = true;
  if (passed_ != 0) expected_.push_back({.steps = std::exchange(passed_, 0)});
  expected_.push_back(heard ? std::move(operation) : ExpectedSteps{.steps = operation.steps});
  pending_.store(true, std::memory_order_release);
}

void StepEvents::forget() {
  const std::lock_guard lock(mutex_);
  forgotten_ = true;
  pending_.store(true, std::memory_order_release);
}

void StepEvents::take() {
  taken_.clear();
  bool forgotten = false;
  {
    const std::lock_guard lock(mutex_);
    taken_.swap(expected_);
    forgotten = forgotten_;
    pending_.store(false, std::memory_order_relaxed);
  }
  if (told_ == nullptr) {
    told_ = std::make_unique<Told>();
    told_->end = told_->begun = told_->over = next_;
    told_->stages.fill(next_);
  }
  if (forgotten) lose();
  if (lost_) return;
  follows_ = true;
  grown_ = true;
  plugin::EventSink* first = nullptr;
  int heard = 0;
  for (ExpectedSteps& one : taken_) {
    Operation& operation = told_->operations.emplace_back(Operation{std::move(one), told_->end});
    told_->end += operation.what.steps;
    begin(operation);
    if (!operation.heard()) continue;
    ++heard;
    if (first == nullptr) first = operation.what.sink.get();
  }
  tellAppended(first, heard);
  taken_.clear();
}

void StepEvents::lose() {
  lost_ = true;
  endAll();
  follows_ = false;
}

void StepEvents::rest() {
  const std::lock_guard lock(mutex_);
  if (!expected_.empty()) return;
  awake_ = false;
  follows_ = false;
}

void StepEvents::begin(Operation& operation) const {
  const ExpectedSteps& what = operation.what;
  if (what.sink == nullptr || (what.mask & ncclProfileProxyOp) == 0) return;
  plugin::Event event{};
  event.type = ncclProfileProxyOp;
  event.parentObj = what.parent;
  event.rank = what.rank;
  event.proxyOp.pid = ownProcess();
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
  step.sink = nullptr;
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
  step.sink = operation.handle == nullptr ? nullptr : what.sink.get();
  step.sends = what.sends;
  if (step.requested == number) setRequest(step, what);
}

/// Costs more than the rest of a step: only where a network has been given the request.
void StepEvents::setRequest(Step& step, const ExpectedSteps& what) {
  if ((what.mask & ncclProfileNetPlugin) == 0) return;
  step.request.set(what.sink, step.handle, what.rank);
  step.set = true;
}

void StepEvents::tellStages(const StepStages& reached) {
  for (std::size_t stage = 0; stage < kOver; ++stage) {
    std::uint64_t& step = told_->stages[stage];
    for (; step != told_->begun && reached[stage] > step; ++step) {
      const Step& its = told_->steps[step % kMost];
      if (its.sink == nullptr) continue;
      plugin::EventStateArgs args{};
      args.proxyStep.transSize = stage == 0 ? 0 : its.bytes;
      its.sink->state(its.handle, (its.sends ? kSendStates : kRecvStates)[stage], &args);
    }
  }
}

void StepEvents::endStep() {
  Step& step = told_->steps[told_->over % kMost];
  Operation& operation = told_->operations.front();
  ++told_->over;
  step.sink = nullptr;
  if (std::exchange(step.set, false)) step.request.clear();
  if (operation.what.sink != nullptr) operation.what.sink->stop(std::exchange(step.handle, nullptr));
  if (told_->over != operation.end()) return;
  if (operation.what.sink != nullptr) operation.what.sink->stop(operation.handle);
  told_->operations.pop_front();
}

void StepEvents::passOver(std::uint64_t over) {
  Told& told = *told_;
  while (!told.operations.empty() && !told.operations.front().heard() &&
         static_cast<std::int64_t>(over - told.over) > 0) {
    const std::uint64_t end = told.operations.front().end();
    told.over = static_cast<std::int64_t>(over - end) < 0 ? over : end;
    const auto catchUp = [&](std::uint64_t& step) {
      if (static_cast<std::int64_t>(told.over - step) > 0) step = told.over;
    };
    catchUp(told.begun);
    for (std::uint64_t& stage : told.stages) catchUp(stage);
    if (told.over == end) told.operations.pop_front();
  }
}

void StepEvents::setBytes(std::uint64_t step, std::uint32_t bytes) const {
  told_->steps[step % kMost].bytes = bytes;
}

void StepEvents::followOn(const StepStages& reached) {
  Told& told = *told_;
  const std::uint64_t over = reached[kOver];
  // What a kernel has done was expected before, but perhaps after look().
  if (static_cast<std::int64_t>(over - told.end) > 0 && pending_.load(std::memory_order_acquire)) take();
  if (static_cast<std::int64_t>(over - told.end) > 0) {
    // Of a connection that was used while nobody counted.
    info(kProxy, "Profiler: a connection has moved steps that no operation was known for; its events end here");
    return lose();
  }
  reached_ = reached;
  grown_ = false;
  const auto moreAreOver = [&] { return static_cast<std::int64_t>(over - told.over) > 0; };
  for (;;) {
    passOver(over);
    while (told.begun != told.end && told.begun - told.over < window_) beginStep();
    tellStages(reached);
    if (!moreAreOver()) break;
    while (told.over != told.begun && moreAreOver() && told.operations.front().heard()) endStep();
  }
  if (told.operations.empty()) rest();
}

void* StepEvents::requestOf(std::uint64_t step) {
  if (lost_) return nullptr;
  Step& its = told_->steps[step % kMost];
  its.requested = step;
  // Receives may be posted before anybody knows whose they are: beginStep() sees to those.
  const bool underWay = step - told_->over < told_->begun - told_->over;
  if (underWay && its.sink != nullptr && !its.set) setRequest(its, operationOf(step).what);
  return &its.request;
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
  follows_ = false;
}

}  // namespace tutti::proxy
