#include "comm/init/net_options.h"

#include <algorithm>
#include <memory>

#include "bootstrap/bootstrap.h"
#include "comm/init/agreement.h"
#include "comm/init/comm_routing.h"
#include "comm/init/stages.h"
#include "comm/launch/device_pool.h"
#include "comm/network/gpu_direct.h"
#include "comm/network/network.h"
#include "comm/network/nics.h"
#include "comm/network/relays.h"
#include "comm/plan/mesh_slots.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/communicator.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

namespace {

/// Whether connections share receives that are posted for several of them together.
bool groupsReceives(const ncclComm& comm) {
  const auto& devices = comm.parts.network->devices();
  return comm.settings->netSharedComms &&
         std::any_of(devices.begin(), devices.end(), [](const auto& d) { return d.maxRecvs > 1; });
}

}  // namespace

bool messagesInPlace(const ncclComm& comm) {
  const CommParts& parts = comm.parts;
  return parts.network != nullptr && parts.network->usesAnyMemory() && !comm.settings->p2p.directDisabled &&
         parts.device->device->driver().softgpuMemoryWindow != nullptr;
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

net::NetTransportOptions netOptions(const ncclComm& comm) {
  const CommParts& parts = comm.parts;
  net::NetTransportOptions options;
  options.routing = std::make_shared<CommRouting>(comm);
  options.farewells = std::make_shared<CommFarewells>(parts);
  options.deviceOwner = parts.device;
  options.relaySecret = relaySecret(*parts.bootstrap);
  options.inPlace = messagesInPlace(comm);
  options.sharedSlots = sharedNetSlots(*comm.settings, longMessageSteps(comm));
  options.sharedConnections = groupsReceives(comm);
  return options;
}

}  // namespace tutti::comm
