#include "comm/execute.h"

#include <algorithm>
#include <memory>

#include "base/log.h"
#include "comm/init.h"
#include "device/kernel_name.h"

namespace tutti {

namespace {

/// Only what kernels look at: the table of works is long, and mostly empty.
void fillArgs(const PlannedLaunch& launch, const device::CommView* view, device::KernelArgs& args) {
  args.comm = view;
  args.nWorks = static_cast<std::uint32_t>(launch.nWorks());
  args.firstChannel = launch.firstChannel;
  if (launch.func == device::Func::SendRecv) {
    std::copy(launch.messages.begin(), launch.messages.end(), args.p2p);
  } else {
    std::copy(launch.colls.begin(), launch.colls.end(), args.coll);
  }
}

/// The same for all launches of one kernel, so that its name is not made every time.
std::uint32_t keyOf(const PlannedLaunch& launch) {
  const auto number = [](auto value) { return static_cast<std::uint32_t>(value); };
  const bool sum = device::sharesKernel(launch.op, device::DevOp::Sum);
  return number(launch.func) << 24 | number(launch.algorithm) << 16 | number(launch.protocol) << 12 |
         number(sum) << 8 | number(launch.type);
}

std::string nameOf(const PlannedLaunch& launch) {
  return device::kernelName(launch.func, launch.algorithm, launch.protocol, launch.op, launch.type);
}

/// Says for reports of stalls that a call waits for peers, as long as it lives.
class Connecting {
 public:
  Connecting(ncclComm& comm, const Plan& plan) : progress_(comm.progress) {
    if (!plan.launches.empty()) progress_.connecting.store(device::funcName(plan.launches.front().func));
  }
  Connecting(const Connecting&) = delete;
  ~Connecting() { progress_.connecting.store(nullptr); }

 private:
  CommProgress& progress_;
};

}  // namespace

Result<PlannedComm> planComm(ncclComm& comm, std::span<const Op> ops) {
  PlannedComm planned{&comm, CallGate::Pass(comm.gate), {}, {}};
  ASSIGN(planned.plan, makePlan(comm.parts.planning, ops));
  if (comm.identity.rank == 0) logDecisions(comm.parts.planning, planned.plan);
  return planned;
}

std::vector<LinkRequest> missingLinks(const PlannedComm& planned) {
  const ChannelSet& channels = *planned.comm->parts.channels;
  return channels.missing(linksOf(planned.plan, channels.neighbours()));
}

Status connectMissing(const PlannedComm& planned) {
  ncclComm& comm = *planned.comm;
  const std::vector<LinkRequest> missing = missingLinks(planned);
  if (missing.empty()) return {};
  ASSIGN(const ContextGuard context, comm.parts.device->device->enter());
  ConnectContext connecting = connectContext(comm);
  connecting.peersMayBeLate = true;
  const Connecting mark(comm, planned.plan);
  TRY(openMissing(connecting, *comm.parts.channels, missing));
  // Told once: from then on nothing of theirs is missing.
  if (planned.plan.usesTree) info(kInit, "Connected all trees");
  if (planned.plan.usesPat) info(kInit, "Connected binomial trees");
  return {};
}

Status loadKernels(PlannedComm& planned) {
  CommParts& parts = planned.comm->parts;
  planned.kernels.clear();
  for (const PlannedLaunch& launch : planned.plan.launches) {
    LoadedKernel& kernel = parts.kernels[keyOf(launch)];
    if (kernel.function == nullptr) {
      kernel.name = nameOf(launch);
      ASSIGN(kernel.function, parts.device->kernels->get(kernel.name));
    }
    planned.kernels.push_back(&kernel);
  }
  return {};
}

Status launchPlanned(const PlannedComm& planned) {
  CommParts& parts = planned.comm->parts;
  const std::vector<PlannedLaunch>& planning = planned.plan.launches;
  if (planning.empty()) return {};
  ASSIGN(const ContextGuard context, parts.device->device->enter());
  const auto args = std::make_unique_for_overwrite<device::KernelArgs[]>(planning.size());
  std::vector<PreparedLaunch> launches;
  launches.reserve(planning.size());
  for (std::size_t i = 0; i < planning.size(); ++i) {
    const PlannedLaunch& launch = planning[i];
    const LoadedKernel& kernel = *planned.kernels[i];
    fillArgs(launch, parts.channels->view(), args[i]);
    launches.push_back({kernel.function, device::funcName(launch.func), launch.nChannels, launch.nThreads, &args[i],
                        kernel.name, {launch.func, launch.algorithm, launch.protocol}});
  }
  ProgressGroup* const driven = parts.channels->driven() ? parts.progress.get() : nullptr;
  return parts.launcher->launch(launches, planned.plan.streams, driven);
}

}  // namespace tutti
