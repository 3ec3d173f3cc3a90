#include "comm/execute.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/log.h"
#include "comm/init.h"
#include "device/kernel_name.h"

namespace tutti {

namespace {

device::KernelArgs argsOf(const PlannedLaunch& launch, const device::CommView* view) {
  device::KernelArgs args;
  std::memset(&args, 0, sizeof(args));
  args.comm = view;
  args.nWorks = static_cast<std::uint32_t>(launch.nWorks());
  args.firstChannel = launch.firstChannel;
  if (launch.func == device::Func::SendRecv) {
    std::copy(launch.messages.begin(), launch.messages.end(), args.p2p);
  } else {
    std::copy(launch.colls.begin(), launch.colls.end(), args.coll);
  }
  return args;
}

std::string nameOf(const PlannedLaunch& launch) {
  return device::kernelName(launch.func, launch.algorithm, launch.protocol, launch.op, launch.type);
}

}  // namespace

Result<PlannedComm> planComm(ncclComm& comm, std::span<const Op> ops) {
  PlannedComm planned{&comm, {}, {}};
  ASSIGN(planned.plan, makePlan(comm.parts.planning, ops));
  if (comm.identity.rank == 0) logDecisions(comm.parts.planning, planned.plan);
  return planned;
}

std::vector<LinkRequest> missingLinks(const PlannedComm& planned) {
  const ChannelSet& channels = *planned.comm->parts.channels;
  return channels.missing(linksOf(planned.plan, channels.neighbours(), channels.channels()));
}

Status connectMissing(const PlannedComm& planned) {
  ncclComm& comm = *planned.comm;
  const std::vector<LinkRequest> missing = missingLinks(planned);
  if (missing.empty()) return {};
  ASSIGN(const ContextGuard context, comm.parts.device->device->enter());
  ConnectContext connecting = connectContext(comm);
  connecting.peersMayBeLate = true;
  TRY(openMissing(connecting, *comm.parts.channels, missing));
  // Told once: from then on nothing of theirs is missing.
  if (planned.plan.usesTree) info(kInit, "Connected all trees");
  if (planned.plan.usesPat) info(kInit, "Connected binomial trees");
  return {};
}

Status loadKernels(PlannedComm& planned) {
  PooledDevice& pooled = *planned.comm->parts.device;
  ASSIGN(const ContextGuard context, pooled.device->enter());
  planned.kernels.clear();
  for (const PlannedLaunch& launch : planned.plan.launches) {
    LoadedKernel kernel{nameOf(launch)};
    ASSIGN(kernel.function, pooled.kernels->get(kernel.name));
    planned.kernels.push_back(std::move(kernel));
  }
  return {};
}

Status launchPlanned(const PlannedComm& planned) {
  CommParts& parts = planned.comm->parts;
  ASSIGN(const ContextGuard context, parts.device->device->enter());
  std::deque<device::KernelArgs> args;   // a deque: launches point into it
  std::vector<PreparedLaunch> launches;
  for (std::size_t i = 0; i < planned.plan.launches.size(); ++i) {
    const PlannedLaunch& launch = planned.plan.launches[i];
    const LoadedKernel& kernel = planned.kernels[i];
    args.push_back(argsOf(launch, parts.channels->view()));
    launches.push_back({kernel.function, device::funcName(launch.func), launch.nChannels, launch.nThreads, &args.back(),
                        kernel.name});
  }
  if (launches.empty()) return {};
  return parts.launcher->launch(launches, planned.plan.streams);
}

}  // namespace tutti
