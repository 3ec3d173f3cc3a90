#include "comm/enqueue/plan_kernels.h"

#include <cstdint>
#include <string>

#include "comm/connect/channels.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/prepared_launch.h"
#include "comm/plan/plan.h"
#include "comm/state/communicator.h"
#include "comm/tuning/tuning.h"
#include "device/kernels/kernel_name.h"
#include "trace/points.h"
#include "trace/session.h"

namespace tutti::comm {

namespace {

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

Status checkMesh(const ncclComm& comm, const Plan& plan) {
  for (const PlannedLaunch& planned : plan.launches) {
    if (!isMesh(planned.algorithm)) continue;
    TRY(comm.parts.channels->checkMesh(device::funcName(planned.func), device::algorithmName(planned.algorithm)));
  }
  return {};
}

}  // namespace

Status loadKernels(ncclComm& comm, Plan& plan, std::vector<PreparedLaunch>& launches) {
  TRY(checkMesh(comm, plan));
  CommParts& parts = comm.parts;
  launches.clear();
  for (PlannedLaunch& planned : plan.launches) {
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
    launches.push_back({kernel.function,
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

}  // namespace tutti::comm
