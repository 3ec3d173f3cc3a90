#include "comm/enqueue/events/launch_events.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "comm/connect/channels.h"
#include "comm/enqueue/events/plan_events.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/graph_refs.h"
#include "comm/launch/launch.h"
#include "comm/plan/op.h"
#include "comm/state/communicator.h"
#include "comm/state/membership.h"
#include "gpu/context.h"
#include "plugin/profiler.h"

namespace tutti::comm {

namespace {

/// What is to be expected when a launch has come up.
struct Said {
  std::shared_ptr<PlanEvents> plan;
  std::vector<void*> handles;
};

}  // namespace

LaunchEvents::LaunchEvents(ncclComm& comm, std::span<const Op> ops, Plan& plan, void* group,
                           std::shared_ptr<PlanEvents>& kept)
    : comm_(comm), group_(group), kept_(kept) {
  if (comm.parts.events == nullptr) return;
  const auto first = std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.events.mask != 0; });
  kernels_ = first != ops.end() && (first->events.mask & ncclProfileKernelLaunch) != 0;
  if (first == ops.end() && !comm.parts.channels->driven()) {
    countUnheard(*comm.parts.events, ops);
    return;
  }
  if (kept_ == nullptr) kept_ = std::make_shared<PlanEvents>();
  kept_->set(comm, ops, plan);
  if (!kept_->empty()) plan_ = kept_;
}

Status LaunchEvents::callFirst(CUstream stream, CUhostFn function, void* argument) const {
  const gpu::Device& device = *comm_.parts.device->device;
  return device.check(device.driver().cuLaunchHostFunc(stream, function, argument),
                      "cuLaunchHostFunc for a profiler's events");
}

Status LaunchEvents::first(CUstream stream, CUgraph captured) {
  if (plan_ == nullptr) return {};
  if (captured != nullptr) {
    kept_.reset();  // it is the graph's
    TRY(comm_.graphs->addTo(*comm_.parts.device->device, captured, plan_));
    return callFirst(
        stream, [](void* events) { static_cast<PlanEvents*>(events)->tell(); }, plan_.get());
  }
  started_ = true;
  plan_->start();
  plan_->expectChannels();
  if (!plan_->expects()) return {};
  // Replays and launches of relatives are said as they come up: so must this one be.
  const bool alone = comm_.membership->family == nullptr && !comm_.parts.launcher->everCaptured();
  if (alone) {
    plan_->expect(plan_->handles());
    return {};
  }
  kept_.reset();  // until the stream has come so far
  auto said = std::make_unique<Said>(Said{plan_, plan_->handles()});
  const CUhostFn say = [](void* argument) {
    const std::unique_ptr<Said> mine(static_cast<Said*>(argument));
    mine->plan->expect(mine->handles);
  };
  TRY(callFirst(stream, say, said.get()));
  static_cast<void>(said.release());
  return {};
}

LaunchEvents::~LaunchEvents() {
  if (started_) plan_->stop();
  if (kept_ != nullptr) kept_->clear();
}

void* LaunchEvents::before(CUstream stream) {
  if (!kernels_) return nullptr;
  plugin::Event event{};
  event.type = ncclProfileKernelLaunch;
  event.parentObj = group_;
  event.kernelLaunch.stream = stream;
  return comm_.parts.events->start(event);
}

void LaunchEvents::after(void* handle) {
  comm_.parts.events->stop(handle);
}

}  // namespace tutti::comm
