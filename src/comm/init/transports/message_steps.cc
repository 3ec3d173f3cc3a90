#include "comm/init/transports/message_steps.h"

#include <algorithm>

#include "comm/agreement/proposal.h"
#include "comm/agreement/wishes.h"
#include "comm/launch/device_pool.h"
#include "comm/network/network.h"
#include "comm/plan/mesh_slots.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/communicator.h"
#include "comm/state/membership.h"
#include "gpu/context.h"

namespace tutti::comm {

bool groupsReceives(const ncclComm& comm) {
  const auto& devices = comm.parts.network->devices();
  return comm.settings->netSharedComms &&
         std::any_of(devices.begin(), devices.end(), [](const auto& d) { return d.maxRecvs > 1; });
}

bool messagesInPlace(const ncclComm& comm) {
  const CommParts& parts = comm.parts;
  return parts.network != nullptr && parts.network->usesAnyMemory() && !comm.settings->p2p.directDisabled &&
         parts.device->device->driver().softgpuMemoryWindow != nullptr;
}

bool letsPastSlots(const ncclComm& comm) {
  // Kernels of GPUs do not.
  return (comm.settings->registersBuffers || comm.settings->registersGraphs) && !comm.settings->kernels.fatbins &&
         comm.parts.device->device->driver().softgpuMemoryWindow != nullptr;
}

bool sendsRegistered(const ncclComm& comm) {
  const CommParts& parts = comm.parts;
  // Connections of a family do not know which member's buffers a kernel sends.
  return parts.network != nullptr && !parts.network->usesAnyMemory() && !comm.membership->family && letsPastSlots(comm);
}

bool registersGraphs(const ncclComm& comm) {
  return comm.settings->registersGraphs;
}

bool longMessageSteps(const ncclComm& comm) {
  const device::Policy policy = policyFor(comm.parts.device->device->driver(), *comm.settings);
  return takesLongSteps(*comm.settings, policy, messagesInPlace(comm));
}

std::uint8_t stepsInPlace(const ncclComm& comm) {
  if (comm.parts.network == nullptr || !longMessageSteps(comm) || groupsReceives(comm)) return 0;
  // The peer takes a whole chunk before it is done with sending its own, be it into slots.
  return static_cast<std::uint8_t>(std::min<std::uint32_t>(sharedNetSlots(*comm.settings, true), kMostStepsInPlace));
}

}  // namespace tutti::comm
