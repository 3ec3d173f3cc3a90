#include "comm/launch/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/trace.h"
#include "comm/launch/graph_refs.h"
#include "comm/launch/implicit_order.h"
#include "comm/launch/kernel_times.h"
#include "comm/launch/launch_marks.h"
#include "comm/launch/launch_order.h"
#include "comm/launch/prepared_launch.h"
#include "gpu/capture.h"
#include "gpu/event.h"
#include "gpu/kernel_launch.h"
#include "gpu/stream.h"
#include "proxy/engine.h"

namespace tutti::comm {

namespace {

/// Captures that may go on side by side before a graph is counted twice, which does no harm.
constexpr std::size_t kCaptures = 8;

/// Keeps the host thread at work until the kernels are on their stream, where their event speaks for them.
class Held {
 public:
  explicit Held(proxy::ProgressGroup* group) : group_(group) {
    if (group_ != nullptr) group_->hold();
  }
  Held(const Held&) = delete;
  ~Held() {
    if (group_ != nullptr) group_->release();
  }

 private:
  proxy::ProgressGroup* group_;
};

void CUDA_CB holdGroup(void* group) {
  static_cast<proxy::ProgressGroup*>(group)->hold();
}
void CUDA_CB releaseGroup(void* group) {
  static_cast<proxy::ProgressGroup*>(group)->release();
}

}  // namespace

Result<std::unique_ptr<Launcher>> Launcher::create(const gpu::Device& device, LaunchRules rules) {
  std::shared_ptr<LaunchOrder> order = std::move(rules.shared);
  std::unique_ptr<gpu::Event> own;
  if (order) {
    ASSIGN(gpu::Event event, gpu::Event::create(device));
    own = std::make_unique<gpu::Event>(std::move(event));
  } else {
    ASSIGN(order, LaunchOrder::create(device, {.mix = rules.mix, .within = rules.orderWithin}));
  }
  std::unique_ptr<LaunchMarks> marks;
  if (rules.marks) {
    ASSIGN(marks, LaunchMarks::create(device));
  }
  return std::unique_ptr<Launcher>(new Launcher(device, rules, std::move(order), std::move(own), std::move(marks)));
}

Launcher::Launcher(const gpu::Device& device, const LaunchRules& rules, std::shared_ptr<LaunchOrder> order,
                   std::unique_ptr<gpu::Event> own, std::unique_ptr<LaunchMarks> marks)
    : device_(&device),
      holds_(rules.holds),
      across_(rules.across),
      remoteDomain_(rules.remoteDomain),
      order_(std::move(order)),
      own_(std::move(own)),
      marks_(std::move(marks)),
      next_(std::make_unique<LaunchedCall>()) {}

Launcher::~Launcher() {
  if (times_ == nullptr) return;
  const ErrorsAsInfo harmless;
  if (const Result<gpu::ContextGuard> guard = device_->enter(); guard.ok()) times_->harvest();
}

void Launcher::callNext(const LaunchedCall& call) {
  *next_ = call;
}

void Launcher::mark(const gpu::CaptureState& capture, std::span<const PreparedLaunch> launches, CUstream main) {
  if (marks_ == nullptr) return;
  capture.capturing ? marks_->captured() : marks_->add(main, *next_, launches);
}

void Launcher::traceNext(std::uint16_t comm, std::uint32_t number) {
  if (times_ == nullptr) {
    times_ = std::make_unique<KernelTimes>(*device_);
    timing_.store(times_.get());
  }
  traced_ = {comm, number};
}

void Launcher::harvestTimes() {
  if (KernelTimes* const times = timing_.load(); times != nullptr) times->harvest();
}

Result<gpu::CaptureState> Launcher::commonCapture(std::span<const CUstream> streams) const {
  gpu::CaptureState common;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    ASSIGN(const gpu::CaptureState state, gpu::captureState(device_->driver(), streams[i]));
    if (i == 0) common = state;
    if (state.capturing == common.capturing && state.id == common.id) continue;
    return fail(ncclInvalidUsage,
                "The streams given to one communicator in one group must all be captured by the same graph, or none of "
                "them (stream {} of {} on device {} differs)",
                i, streams.size(), device_->ordinal());
  }
  return common;
}

Result<bool> Launcher::captured(std::span<const CUstream> streams) const {
  ASSIGN(const gpu::ContextGuard guard, device_->enter());
  ASSIGN(const gpu::CaptureState capture, commonCapture(streams));
  return capture.capturing;
}

Status Launcher::tellOfGraph(const gpu::CaptureState& capture) {
  if (!capture.capturing || holds_ == nullptr) return {};
  if (std::find(captures_.begin(), captures_.end(), capture.id) != captures_.end()) return {};
  TRY(holds_->addTo(*device_, capture.graph));
  if (captures_.size() == kCaptures) captures_.pop_front();
  captures_.push_back(capture.id);
  return {};
}

/// The end of what this launcher has put on `main` by now.
Status Launcher::noteEnd(const gpu::CaptureState& capture, CUstream main) {
  if (own_) TRY(capture.capturing ? gpu::recordAtReplay(*device_, capture, main, own_->get()) : own_->record(main));
  if (capture.capturing) {
    everCaptured_.store(true, std::memory_order_relaxed);
  } else {
    launched_.fetch_add(1);
  }
  return {};
}

Status Launcher::recordForCaller(const gpu::CaptureState& capture, CUstream stream, CUevent event) const {
  if (event == nullptr) return {};
  // An event that was captured could be waited for in the graph alone.
  if (capture.capturing) return gpu::recordAtReplay(*device_, capture, stream, event);
  return device_->check(device_->driver().cuEventRecord(event, stream), "cuEventRecord of a launchCompletionEvent");
}

Status Launcher::launchOne(const PreparedLaunch& launch, CUstream stream, CUevent begun) {
  note(launch);
  // The driver copies the parameters before it returns and never writes to them.
  void* params[] = {const_cast<device::KernelArgs*>(launch.args)};
  void* const told = launch.listener != nullptr ? launch.listener->before(stream) : nullptr;
  const gpu::KernelLaunch kernel{launch.function, launch.grid, launch.block, params, stream, remoteDomain_, begun};
  const CUresult result = gpu::launchKernel(device_->driver(), kernel);
  if (launch.listener != nullptr) launch.listener->after(told);
  if (tracing()) {
    traceStep(kColl, "launch of {} on device {}: grid {} block {} stream {}: {}", lastLaunch(), device_->ordinal(),
              launch.grid, launch.block, fmt::ptr(stream), static_cast<int>(result));
  }
  if (result == CUDA_SUCCESS) return {};
  return gpu::checkCu(device_->driver(), result, gpu::CuCall{gpu::callOf(kernel), device_->ordinal(), 0, lastLaunch()});
}

/// Up to the first that fails. `begun`: what the last records when it begins; `any`: whether there was one before.
Status Launcher::launchAll(std::span<const PreparedLaunch> launches, CUstream main, CUevent begun, bool& any) {
  for (const PreparedLaunch& one : launches) {
    TRY(launchOne(one, main, &one == &launches.back() ? begun : nullptr));
    any = true;
  }
  return {};
}

Status Launcher::callAtReplay(CUstream stream, CUhostFn function, proxy::ProgressGroup* driven) const {
  return gpu::checkCu(device_->driver(), device_->driver().cuLaunchHostFunc(stream, function, driven),
                      gpu::CuCall{"cuLaunchHostFunc", device_->ordinal(), 0, "drive the network in a graph"});
}

Status Launcher::launch(std::span<const PreparedLaunch> launches, std::span<const CUstream> streams,
                        proxy::ProgressGroup* driven, CUevent atStart,
                        const std::function<void(bool captured)>& before) {
  if (streams.empty()) return fail(ncclInternalError, "A launch needs a stream (device {})", device_->ordinal());
  ASSIGN(const gpu::ContextGuard guard, device_->enter());
  ASSIGN(const gpu::CaptureState capture, commonCapture(streams));
  if (before) before(capture.capturing);
  const bool inGraph = capture.capturing && driven != nullptr;
  const Held held(inGraph ? nullptr : driven);
  TRY(tellOfGraph(capture));
  TRY(order_->before(capture, streams));
  std::optional<ImplicitOrder::Turn> turn;
  if (across_ != nullptr && !launches.empty()) {
    ASSIGN(turn, across_->begin(capture, streams.back()));
  }
  TRY(recordForCaller(capture, streams.back(), atStart));
  if (inGraph) TRY(callAtReplay(streams.back(), holdGroup, driven));
  if (!launches.empty() && launches.front().listener != nullptr) {
    TRY(launches.front().listener->first(streams.back(), capture.capturing ? capture.graph : nullptr));
  }
  mark(capture, launches, streams.back());
  const Traced traced = std::exchange(traced_, {});
  const bool timed = traced.number != 0 && !capture.capturing;
  if (timed) times_->begin(streams.back(), launches);
  ++launching_;  // before anything is counted
  bool any = false;
  Status status = launchAll(launches, streams.back(), turn ? turn->begun() : nullptr, any);
  const bool recorded = status.ok();
  // What is on the stream has to be known, whatever came after it.
  if (inGraph) {
    const Status released = callAtReplay(streams.back(), releaseGroup, driven);
    if (status.ok()) status = released;
  }
  if (marks_ != nullptr && !status.ok()) marks_->giveUp();
  if (timed) times_->end(streams.back(), traced.comm, traced.number, launches.size());
  if (!any && !status.ok()) return status;
  const Status across = turn ? turn->end(recorded) : Status();
  if (status.ok()) status = across;
  const Status ordered = order_->after(capture, streams);
  const Status noted = noteEnd(capture, streams.back());
  if (status.ok()) status = ordered;
  if (status.ok()) status = noted;
  if (status.ok()) --launching_;
  return status;
}

Status Launcher::launch(std::span<const PreparedLaunch> launches, CUstream stream) {
  return launch(launches, {&stream, 1});
}

Status Launcher::drain(const Abort* abort) const {
  return drain(abort, gpu::kDeviceWaitBound);
}

Status Launcher::drain(const Abort* abort, std::chrono::milliseconds bound) const {
  return done().wait(abort, bound);
}

const gpu::Event& Launcher::done() const {
  return own_ ? *own_ : order_->last();
}

CUresult Launcher::query() {
  const std::uint64_t launched = launched_.load();
  const gpu::Driver& driver = device_->driver();
  // No ContextGuard, which logs and forgets the driver's code: when the process ends, the driver refuses every call,
  // and nothing is wrong with the kernels.
  if (const CUresult refused = driver.cuCtxPushCurrent(device_->context()); refused != CUDA_SUCCESS) return refused;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result = driver.cuThreadExchangeStreamCaptureMode(&mode);
  if (result == CUDA_SUCCESS) {
    result = driver.cuEventQuery(done().get());
    if (result == CUDA_SUCCESS) harvestTimes();
    static_cast<void>(driver.cuThreadExchangeStreamCaptureMode(&mode));
  }
  CUcontext popped = nullptr;
  static_cast<void>(driver.cuCtxPopCurrent(&popped));
  if (result == CUDA_SUCCESS) seenDone_.store(launched);
  return result;
}

void Launcher::note(const PreparedLaunch& launch) {
  const std::lock_guard lock(namesMutex_);
  lastOperation_ = launch.operation;
  lastKernel_ = launch.kernel;
  note_.shape = launch.shape;
  note_.nChannels = launch.grid;
  note_.root = -1;
  note_.follows = true;
  note_.inPlace = false;
  note_.messages.clear();
  if (launch.args == nullptr) return;
  const std::uint32_t works = launch.args->nWorks;
  note_.firstChannel = launch.args->firstChannel;
  note_.operations += works;
  if (launch.shape.func == device::Func::SendRecv) {
    note_.messages.assign(launch.args->p2p, launch.args->p2p + works);
    return countMessages();
  }
  if (works > 0) note_.root = launch.args->coll[0].root;
  note_.collectives += works;
  const auto inPlace = std::count_if(launch.args->coll, launch.args->coll + works, [](const device::CollWork& work) {
    return work.pairMethod == device::PairMethod::InPlace;
  });
  note_.inPlace = inPlace > 0;
  note_.follows = inPlace < static_cast<std::ptrdiff_t>(works);
}

/// Those without content do not count: who receives nothing need not have waited for its sender.
void Launcher::countMessages() {
  const auto of = [this](std::int32_t peer) -> MessageCounts& {
    const auto place = static_cast<std::size_t>(peer);
    if (place >= messages_.size()) messages_.resize(place + 1);
    return messages_[place];
  };
  for (const device::P2pWork& work : note_.messages) {
    if (work.sendPeer >= 0 && work.sendBytes > 0) ++of(work.sendPeer).sent;
    if (work.recvPeer >= 0 && work.recvBytes > 0) ++of(work.recvPeer).received;
  }
}

LaunchCounts Launcher::counts() const {
  const std::lock_guard lock(namesMutex_);
  return {note_.operations, note_.collectives, messages_};
}

LaunchNote Launcher::lastNote() const {
  const std::lock_guard lock(namesMutex_);
  LaunchNote note = note_;
  note.text = lastLaunchLocked();
  return note;
}

std::string Launcher::lastOperation() const {
  const std::lock_guard lock(namesMutex_);
  return lastOperation_;
}

std::string Launcher::lastLaunch() const {
  const std::lock_guard lock(namesMutex_);
  return lastLaunchLocked();
}

std::string Launcher::lastLaunchLocked() const {
  if (lastOperation_.empty()) return "none";
  const std::string kernel = lastKernel_.empty() ? "" : fmt::format(" (kernel {})", lastKernel_);
  return fmt::format("operation {}{}", lastOperation_, kernel);
}

}  // namespace tutti::comm
