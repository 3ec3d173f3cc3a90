#include "comm/enqueue/comm_work.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/threads/thread.h"
#include "comm/connect/channels.h"
#include "comm/connect/link_types.h"
#include "comm/diagnosis/call_exchange.h"
#include "comm/diagnosis/message_log.h"
#include "comm/enqueue/group_calls.h"
#include "comm/enqueue/launch_events.h"
#include "comm/enqueue/registered_buffers.h"
#include "comm/enqueue/tracing.h"
#include "comm/init/channels/connect_missing.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/launch.h"
#include "comm/launch/launch_marks.h"
#include "comm/launch/prepared_launch.h"
#include "comm/plan/op.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_context.h"
#include "comm/plan/plan_text.h"
#include "comm/plan/planner.h"
#include "comm/state/call_gate.h"
#include "comm/state/communicator.h"
#include "comm/state/op_tally.h"
#include "comm/state/revocation.h"
#include "device/kernels/kernel_name.h"
#include "trace/comm_counts.h"
#include "trace/points.h"
#include "trace/session.h"

namespace tutti::comm {

namespace {

constexpr std::size_t kOpsKept = 1024;

/// The same for all launches of one kernel, so that its name is not made every time.
std::uint32_t keyOf(const KernelShape& kernel) {
  const auto number = [](auto value) { return static_cast<std::uint32_t>(value); };
  const bool sum = device::sharesKernel(kernel.op, device::DevOp::Sum);
  return number(kernel.func) << 24 | number(kernel.algorithm) << 16 | number(kernel.protocol) << 12 | number(sum) << 8 |
         number(kernel.type);
}

std::string nameOf(const KernelShape& kernel) {
  return device::kernelName(kernel.func, kernel.algorithm, kernel.protocol, kernel.op, kernel.type);
}

/// Says for reports of stalls for which operation a call opens connections, as long as it lives.
class Connecting {
 public:
  Connecting(CommProgress& progress, const Plan& plan, const LaunchedCall& call) : progress_(progress) {
    const int alone = call.messages ? CommProgress::kMessagesAlone : 0;
    progress_.connectingCall.store(static_cast<std::uint16_t>(call.function | alone));
    if (!plan.launches.empty()) progress_.connecting.store(device::funcName(plan.launches.front().func));
  }
  Connecting(const Connecting&) = delete;
  ~Connecting() { progress_.connecting.store(nullptr); }

 private:
  CommProgress& progress_;
};

}  // namespace

/// What lasts from one group to the next.
struct CommWork::Kept {
  std::vector<Op> ops;
  std::vector<Call> calls;        ///< the collectives, as ranks compare them
  std::vector<Message> messages;  ///< the same of Send and Recv
  Planner planner;
  Plan plan;
  std::vector<LinkRequest> missing;
  enum class Noted : std::uint8_t { No, Yes, InGraph };
  Noted noted = Noted::No;               ///< whether the communicator counts its calls
  std::vector<PreparedLaunch> launches;  ///< one per launch of the plan, once loadKernels() was there
  std::shared_ptr<PlanEvents> events;    ///< for those who profile it; null: not yet
};

CommWork::CommWork() : kept_(std::make_unique<Kept>()) {}

CommWork::~CommWork() = default;

void CommWork::begin(ncclComm& comm) {
  comm_ = &comm;
  kept_->ops.clear();
  kept_->calls.clear();
  kept_->messages.clear();
  if (kept_->ops.capacity() > kOpsKept) kept_->ops.shrink_to_fit();
  if (kept_->calls.capacity() > kOpsKept) kept_->calls.shrink_to_fit();
  if (kept_->messages.capacity() > kOpsKept) kept_->messages.shrink_to_fit();
  kept_->missing.clear();
  kept_->noted = Kept::Noted::No;
  kept_->launches.clear();
}

void CommWork::add(const Op& op) {
  if (const std::optional<Call> call = callOf(op)) kept_->calls.push_back(*call);
  if (const auto message = messageOf(op); message && message->peer != comm_->identity.rank) {
    kept_->messages.push_back(*message);
  }
  kept_->ops.push_back(op);
}

bool CommWork::launches() const {
  return !kept_->plan.launches.empty();
}

bool CommWork::mustConnect() const {
  return !kept_->missing.empty();
}

const Plan& CommWork::planned() const {
  return kept_->plan;
}

Status CommWork::plan() {
  pass_.emplace(*comm_->gate);
  comm_->progress.caller.store(threadNumber(), std::memory_order_relaxed);
  TRY(checkMayGoOn());
  const CommParts& parts = comm_->parts;
  if (parts.planning->tuner) TRY(tellRegistered(*comm_, kept_->ops));
  const std::uint64_t begin = trace::on() ? trace::now() : 0;
  TRY(kept_->planner.plan(*parts.planning, kept_->ops, kept_->plan));
  if (begin != 0) tracePlan(*comm_, kept_->ops, kept_->plan, begin);
  if (comm_->identity.rank == 0) logDecisions(*parts.planning, kept_->plan);
  parts.channels->findMissing(kept_->plan, kept_->missing);
  return {};
}

Status CommWork::checkMayGoOn() const {
  return checkNotRevoked(*comm_, apiFuncName(kept_->ops.front().func));
}

Status CommWork::connect() {
  if (kept_->missing.empty()) return {};
  noteWaiting();
  const Connecting mark(comm_->progress, kept_->plan, launchedCall());
  const trace::Within within(comm_->progress.traced->number);
  const trace::Span span(trace::Kind::Connect, comm_->progress.traced->number, trace::Takes::Long,
                         [this] { return peersText(kept_->missing); });
  return connectMissing(*comm_, kept_->plan, kept_->missing);
}

Status CommWork::checkMesh() const {
  for (const PlannedLaunch& planned : kept_->plan.launches) {
    if (!isMesh(planned.algorithm)) continue;
    TRY(comm_->parts.channels->checkMesh(device::funcName(planned.func), device::algorithmName(planned.algorithm)));
  }
  return {};
}

Status CommWork::loadKernels() {
  TRY(checkMesh());
  CommParts& parts = comm_->parts;
  kept_->launches.clear();
  for (PlannedLaunch& planned : kept_->plan.launches) {
    LoadedKernel& kernel = parts.kernels[keyOf(planned)];
    if (kernel.function == nullptr) {
      kernel.name = nameOf(planned);
      ASSIGN(kernel.function, parts.device->kernel(kernel.name));
      if (trace::on()) kernel.traced = trace::text(kernel.name);
    }
    planned.args.comm = parts.channels->view();
    planned.args.stamps = nullptr;
    planned.args.marks = nullptr;
    planned.args.firstChannel = planned.firstChannel;
    kept_->launches.push_back({kernel.function,
                               device::funcName(planned.func),
                               planned.nChannels,
                               planned.nThreads,
                               &planned.args,
                               kernel.name,
                               {planned.func, planned.algorithm, planned.protocol},
                               kernel.traced});
  }
  return {};
}

Status CommWork::launch(void* groupEvent) {
  if (kept_->launches.empty()) {
    noteCalls(false);
    return {};
  }
  TRY(markRegistered(*comm_, kept_->plan));
  const CommParts& parts = comm_->parts;
  proxy::ProgressGroup* const driven = parts.channels->driven() ? parts.progress.get() : nullptr;
  const std::uint64_t begin = trace::on() ? trace::now() : 0;
  if (begin != 0) parts.launcher->traceNext(comm_->progress.traced->number, comm_->progress.traced->launches + 1);
  std::optional<LaunchEvents> events;
  if (parts.events != nullptr) {
    events.emplace(*comm_, kept_->ops, kept_->plan, groupEvent, kept_->events);
    for (PreparedLaunch& one : kept_->launches) one.listener = events->listener();
  }
  TRY(parts.launcher->launch(kept_->launches, kept_->plan.streams, driven, kept_->plan.launchEvent,
                             [this](bool captured) {
                               noteCalls(captured);
                               comm_->parts.launcher->callNext(launchedCall());
                             }));
  if (begin != 0) traceLaunches(*comm_, kept_->ops, kept_->launches, begin);
  for (const Decision& decision : kept_->plan.decisions) {
    comm_->tally->launched(decision.choice.algorithm, decision.choice.protocol, decision.request.bytes);
  }
  return {};
}

/// What graphs replay, and when, nobody knows: it has no place among the other calls.
void CommWork::noteCalls(bool captured) {
  if (kept_->noted != Kept::Noted::No || comm_->identity.nRanks == 1) return;
  kept_->noted = captured ? Kept::Noted::InGraph : Kept::Noted::Yes;
  CallLog& log = comm_->calls->log();
  if (!kept_->calls.empty()) captured ? log.addCaptured(kept_->calls) : log.add(kept_->calls);
  MessageLog& messages = comm_->calls->messages();
  if (!kept_->messages.empty()) captured ? messages.giveUp() : messages.add(kept_->messages);
}

/// Others may wait for them, or find that they call something else. What is wrong with the streams the launch will say.
void CommWork::noteWaiting() {
  const ErrorsAsInfo quiet;
  if (const Result<bool> inGraph = captured(); inGraph.ok()) noteCalls(inGraph.value());
}

void CommWork::forgetCalls() {
  const Kept::Noted noted = std::exchange(kept_->noted, Kept::Noted::No);
  if (noted == Kept::Noted::No) return;
  if (!kept_->calls.empty()) comm_->calls->log().giveUp(noted == Kept::Noted::Yes ? kept_->calls.size() : 0);
  if (!kept_->messages.empty()) comm_->calls->messages().giveUp();
}

/// What is about to be launched; its number is right once its calls are noted.
LaunchedCall CommWork::launchedCall() const {
  const bool messages = kept_->calls.empty();
  const ApiFunc function = messages ? kept_->ops.front().func : kept_->calls.front().func;
  return {comm_->calls->log().called(), static_cast<std::uint8_t>(function), messages};
}

Result<bool> CommWork::captured() const {
  if (kept_->plan.streams.empty()) return false;
  return comm_->parts.launcher->captured(kept_->plan.streams);
}

bool CommWork::mustCheckCalls() const {
  return comm_->options.checkCalls && comm_->identity.nRanks > 1 && !kept_->calls.empty();
}

Status CommWork::checkCalls() {
  if (!mustCheckCalls()) return {};
  ASSIGN(const bool inGraph, captured());
  if (inGraph) return {};
  const Connecting mark(comm_->progress, kept_->plan, launchedCall());
  const trace::Span span(trace::Kind::Wait, comm_->progress.traced->number, "the calls of all ranks",
                         trace::Takes::Long);
  CallLog& log = comm_->calls->log();
  log.begin(kept_->calls);
  const Status compared = compareGroup(*comm_, kept_->calls);
  log.begin({});
  return compared;
}

void CommWork::leave() {
  pass_.reset();
  comm_ = nullptr;
}

}  // namespace tutti::comm
