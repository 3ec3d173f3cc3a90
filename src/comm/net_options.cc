#include "comm/net_options.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "comm/agreement.h"
#include "comm/communicator.h"
#include "comm/gpu_direct.h"
#include "comm/mesh_slots.h"
#include "comm/nics.h"
#include "comm/relays.h"
#include "comm/stages.h"

namespace tutti {

namespace {

NicQuestion questionOf(const CommParts& parts, const LinkSpec& link, bool sends) {
  return NicQuestion{.devices = parts.network->usable(),
                     .turn = parts.layout->localRank(),
                     .channel = link.channel,
                     .kind = link.kind,
                     .direction = sends ? Direction::Send : Direction::Recv};
}

SlotPlace slotsAt(const ncclComm& comm, int device, std::optional<NicAccess> access, Direction direction) {
  const CommParts& parts = comm.parts;
  return slotPlaceFor({.device = parts.network->devices()[static_cast<std::size_t>(device)],
                       .access = access,
                       .direction = direction,
                       .computeCapability = parts.device->device->facts().computeCapability,
                       .softGpu = parts.device->device->driver().softGpu,
                       .dmaBufs = parts.network->dmaBufs()},
                      comm.runtime.gpuDirect);
}

SendRoute routeOf(const ncclComm& comm, const LinkSpec& link, NicPlace receiver) {
  const CommParts& parts = comm.parts;
  RouteQuestion question{questionOf(parts, link, true), {receiver.number, receiver.rail}, comm.runtime.pxnLevel};
  // Relays offer host memory: a message that can leave our GPU's memory by RDMA stays with our own NIC.
  if (link.kind == device::ConnKind::Mesh &&
      slotsAt(comm, nicFor(parts.nics, question.nic), accessFor(parts.nics, question.nic), Direction::Send).onDevice) {
    question.level = 0;
  }
  const Route route = routeFor(parts.nics, question);
  SendRoute way{.device = route.device};
  if (const PeerInfo* relay = relayOf(comm, route.relay); relay != nullptr) {
    way.relay = *relay;
    return way;
  }
  way.slots = slotsAt(comm, route.device, accessTo(parts.nics, route.nic), Direction::Send);
  return way;
}

/// Whether connections share receives that are posted for several of them together.
bool groupsReceives(const ncclComm& comm) {
  const auto& devices = comm.parts.network->devices();
  return comm.runtime.netSharedComms &&
         std::any_of(devices.begin(), devices.end(), [](const auto& d) { return d.maxRecvs > 1; });
}

}  // namespace

bool messagesInPlace(const ncclComm& comm) {
  const CommParts& parts = comm.parts;
  return parts.network != nullptr && parts.network->usesAnyMemory() && !comm.runtime.p2p.directDisabled &&
         parts.device->device->driver().softgpuMemoryWindow != nullptr;
}

bool longMessageSteps(const ncclComm& comm) {
  const device::Policy policy = policyFor(comm.parts.device->device->driver(), comm.runtime);
  return takesLongSteps(comm.runtime, policy, messagesInPlace(comm));
}

std::uint8_t stepsInPlace(const ncclComm& comm) {
  if (comm.parts.network == nullptr || !longMessageSteps(comm) || groupsReceives(comm)) return 0;
  // The peer takes a whole chunk before it is done with sending its own, be it into slots.
  return static_cast<std::uint8_t>(std::min<std::uint32_t>(sharedNetSlots(comm.runtime, true), kMostStepsInPlace));
}

NetTransportOptions netOptions(const ncclComm& comm) {
  const CommParts& parts = comm.parts;
  NetTransportOptions options;
  options.deviceOf = [&parts](const LinkSpec& link, bool sends) {
    return nicFor(parts.nics, questionOf(parts, link, sends));
  };
  options.slotsOf = [&comm, &parts](const LinkSpec& link, bool sends) {
    const NicQuestion asked = questionOf(parts, link, sends);
    return slotsAt(comm, nicFor(parts.nics, asked), accessFor(parts.nics, asked), asked.direction);
  };
  options.nicOf = [&parts](const LinkSpec& link) {
    const RailPlace place = placeOf(parts.nics, questionOf(parts, link, false));
    return NicPlace{place.nic, place.rail};
  };
  options.routed = [&parts](const LinkSpec& link) {
    return sendsThroughOthers(parts.nics) && link.self.hostHash != link.peer.hostHash;
  };
  options.routeOf = [&comm](const LinkSpec& link, NicPlace receiver) { return routeOf(comm, link, receiver); };
  options.deviceOwner = parts.device;
  options.relaySecret = relaySecret(comm);
  options.hasLeft = [&parts](int peer) { return parts.bootstrap == nullptr || parts.bootstrap->hasLeft(peer); };
  options.inPlace = messagesInPlace(comm);
  options.sharedSlots = sharedNetSlots(comm.runtime, longMessageSteps(comm));
  options.sharedJoins = groupsReceives(comm);
  return options;
}

}  // namespace tutti
