#include "comm/enqueue/comm_work.h"

#include <cstdint>
#include <string>

#include "comm/connect/channels.h"
#include "comm/init/connect_stage.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/launch.h"
#include "comm/plan/plan_context.h"
#include "comm/plan/plan_text.h"
#include "comm/state/communicator.h"
#include "comm/state/peer_wait.h"
#include "comm/state/revocation.h"
#include "device/kernels/kernel_name.h"

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

/// Says for reports of stalls that a call waits for peers, as long as it lives.
class Connecting {
 public:
  Connecting(ncclComm& comm, const Plan& plan) : wait_(comm), progress_(comm.progress) {
    if (!plan.launches.empty()) progress_.connecting.store(device::funcName(plan.launches.front().func));
  }
  Connecting(const Connecting&) = delete;
  ~Connecting() { progress_.connecting.store(nullptr); }

 private:
  const PeerWait wait_;
  CommProgress& progress_;
};

}  // namespace

void CommWork::begin(ncclComm& comm) {
  comm_ = &comm;
  ops_.clear();
  if (ops_.capacity() > kOpsKept) ops_.shrink_to_fit();
  missing_.clear();
  launches_.clear();
}

Status CommWork::plan() {
  pass_.emplace(comm_->gate);
  TRY(checkMayGoOn());
  const CommParts& parts = comm_->parts;
  TRY(planner_.plan(*parts.planning, ops_, plan_));
  if (comm_->identity.rank == 0) logDecisions(*parts.planning, plan_);
  parts.channels->findMissing(plan_, missing_);
  return {};
}

Status CommWork::checkMayGoOn() const {
  return checkNotRevoked(*comm_, apiFuncName(ops_.front().func));
}

Status CommWork::connect() {
  if (missing_.empty()) return {};
  const Connecting mark(*comm_, plan_);
  return connectMissing(*comm_, plan_, missing_);
}

Status CommWork::checkMesh() const {
  for (const PlannedLaunch& planned : plan_.launches) {
    if (!isMesh(planned.algorithm)) continue;
    TRY(comm_->parts.channels->checkMesh(device::funcName(planned.func), device::algorithmName(planned.algorithm)));
  }
  return {};
}

Status CommWork::loadKernels() {
  TRY(checkMesh());
  CommParts& parts = comm_->parts;
  launches_.clear();
  for (PlannedLaunch& planned : plan_.launches) {
    LoadedKernel& kernel = parts.kernels[keyOf(planned)];
    if (kernel.function == nullptr) {
      kernel.name = nameOf(planned);
      ASSIGN(kernel.function, parts.device->kernel(kernel.name));
    }
    planned.args.comm = parts.channels->view();
    planned.args.firstChannel = planned.firstChannel;
    launches_.push_back({kernel.function,
                         device::funcName(planned.func),
                         planned.nChannels,
                         planned.nThreads,
                         &planned.args,
                         kernel.name,
                         {planned.func, planned.algorithm, planned.protocol}});
  }
  return {};
}

Status CommWork::launch() {
  if (launches_.empty()) return {};
  const CommParts& parts = comm_->parts;
  proxy::ProgressGroup* const driven = parts.channels->driven() ? parts.progress.get() : nullptr;
  return parts.launcher->launch(launches_, plan_.streams, driven, plan_.launchEvent);
}

void CommWork::leave() {
  pass_.reset();
  comm_ = nullptr;
}

}  // namespace tutti::comm
