#include "comm/init/transports/comm_routing.h"

#include <cstddef>
#include <optional>

#include "bootstrap/bootstrap.h"
#include "comm/network/gpu_direct.h"
#include "comm/network/network.h"
#include "comm/network/nics.h"
#include "comm/network/relays.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/communicator.h"
#include "comm/state/family_peers.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

namespace {

NicQuestion questionOf(const CommParts& parts, const transport::LinkSpec& link, device::Direction direction) {
  return NicQuestion{.devices = parts.network->usable(),
                     .turn = parts.layout->localRank(),
                     .channel = link.channel,
                     .kind = link.kind,
                     .direction = direction};
}

net::SlotPlace slotsAt(const ncclComm& comm, int device, std::optional<NicAccess> access, device::Direction direction) {
  const CommParts& parts = comm.parts;
  const topo::PeerInfo& self = parts.peers[static_cast<std::size_t>(comm.identity.rank)];
  return slotPlaceFor({.device = parts.network->devices()[static_cast<std::size_t>(device)],
                       .access = access,
                       .direction = direction,
                       .computeCapability = self.computeCapability,
                       .softGpu = self.softGpu != 0,
                       .dmaBufs = parts.network->dmaBufs()},
                      comm.settings->gpuDirect);
}

net::EndPlace ownPlace(const ncclComm& comm, const NicQuestion& asked) {
  const OwnNics& nics = comm.parts.network->nics();
  const int device = nicFor(nics, asked);
  return {device, slotsAt(comm, device, accessFor(nics, asked), asked.direction)};
}

}  // namespace

net::EndPlace CommRouting::placeOf(const transport::LinkSpec& link, device::Direction direction) const {
  return ownPlace(comm_, questionOf(comm_.parts, link, direction));
}

net::NicPlace CommRouting::nicOf(const transport::LinkSpec& link) const {
  const RailPlace place =
      tutti::comm::placeOf(comm_.parts.network->nics(), questionOf(comm_.parts, link, device::Direction::Recv));
  return net::NicPlace{place.nic, place.rail};
}

bool CommRouting::routed(const transport::LinkSpec& link) const {
  return sendsThroughOthers(comm_.parts.network->nics()) && link.self.hostHash != link.peer.hostHash;
}

net::SendRoute CommRouting::routeOf(const transport::LinkSpec& link, net::NicPlace receiver) const {
  const CommParts& parts = comm_.parts;
  RouteQuestion question{
      questionOf(parts, link, device::Direction::Send), {receiver.number, receiver.rail}, comm_.settings->pxnLevel};
  // Relays offer host memory: a message that can leave our GPU's memory by RDMA stays with our own NIC.
  if (link.kind == device::ConnKind::Mesh && ownPlace(comm_, question.nic).slots.onDevice) question.level = 0;
  const Route route = routeFor(parts.network->nics(), question);
  net::SendRoute way{.place = {.device = route.device}};
  if (const topo::PeerInfo* relay = relayOf(*parts.layout, parts.peers, route.relay); relay != nullptr) {
    way.relay = *relay;
    return way;
  }
  way.place.slots = slotsAt(comm_, route.device, accessTo(parts.network->nics(), route.nic), device::Direction::Send);
  return way;
}

bool CommFarewells::hasLeft(int peer) const {
  return parts_.bootstrap == nullptr || parts_.bootstrap->hasLeft(peer);
}

std::string CommFarewells::exitOf(int peer) const {
  const bool exited = parts_.bootstrap != nullptr && parts_.bootstrap->hasExited(peer);
  return exited ? parts_.bootstrap->describeDeparture(peer) : std::string();
}

bool FamilyFarewells::hasLeft(int peer) const {
  return peers_->hasLeft(places_[static_cast<std::size_t>(peer)]);
}

std::string FamilyFarewells::exitOf(int peer) const {
  return peers_->exitOf(places_[static_cast<std::size_t>(peer)]);
}

}  // namespace tutti::comm
