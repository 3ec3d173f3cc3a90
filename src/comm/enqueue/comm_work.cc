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
#include "comm/enqueue/events/launch_events.h"
#include "comm/enqueue/events/tracing.h"
#include "comm/enqueue/noted_calls.h"
#include "comm/enqueue/plan_kernels.h"
#include "comm/enqueue/registered_buffers.h"
#include "comm/init/channels/connect_missing.h"
#include "comm/launch/launch.h"
#include "comm/launch/prepared_launch.h"
#include "comm/plan/op.h"
#include "comm/plan/plan.h"
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
  NotedCalls calls;
  Planner planner;
  Plan plan;
  std::vector<LinkRequest> missing;
  std::vector<PreparedLaunch> launches;  ///< one per launch of the plan, once loadKernels() was there
  std::shared_ptr<PlanEvents> events;    ///< for those who profile it; null: not yet
};

CommWork::CommWork() : kept_(std::make_unique<Kept>()) {}

CommWork::~CommWork() = default;

void CommWork::begin(ncclComm& comm) {
  comm_ = &comm;
  kept_->ops.clear();
  if (kept_->ops.capacity() > kOpsKept) kept_->ops.shrink_to_fit();
  kept_->calls.begin(comm);
  kept_->missing.clear();
  kept_->launches.clear();
}

void CommWork::add(const Op& op) {
  kept_->calls.add(op);
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
  TRY(tellRegistered(*comm_, kept_->ops));
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

Status CommWork::loadKernels() {
  return comm::loadKernels(*comm_, kept_->plan, kept_->launches);
}

Status CommWork::launch(void* groupEvent) {
  if (kept_->launches.empty()) {
    kept_->calls.note(false);
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
                               kept_->calls.note(captured);
                               comm_->parts.launcher->callNext(launchedCall());
                             }));
  if (begin != 0) traceLaunches(*comm_, kept_->ops, kept_->launches, begin);
  for (const Decision& decision : kept_->plan.decisions) {
    comm_->tally->launched(decision.choice.algorithm, decision.choice.protocol, decision.request.bytes);
  }
  return {};
}

/// Others may wait for them, or find that they call something else. What is wrong with the streams the launch will say.
void CommWork::noteWaiting() {
  const ErrorsAsInfo quiet;
  if (const Result<bool> inGraph = captured(); inGraph.ok()) kept_->calls.note(inGraph.value());
}

void CommWork::forgetCalls() {
  kept_->calls.forget();
}

LaunchedCall CommWork::launchedCall() const {
  return kept_->calls.launched(kept_->ops.front());
}

Result<bool> CommWork::captured() const {
  if (kept_->plan.streams.empty()) return false;
  return comm_->parts.launcher->captured(kept_->plan.streams);
}

bool CommWork::mustCheckCalls() const {
  return kept_->calls.mustCompare();
}

Status CommWork::checkCalls() {
  if (!mustCheckCalls()) return {};
  ASSIGN(const bool inGraph, captured());
  if (inGraph) return {};
  const Connecting mark(comm_->progress, kept_->plan, launchedCall());
  const trace::Span span(trace::Kind::Wait, comm_->progress.traced->number, "the calls of all ranks",
                         trace::Takes::Long);
  return kept_->calls.compareAll();
}

void CommWork::leave() {
  pass_.reset();
  comm_ = nullptr;
}

}  // namespace tutti::comm
