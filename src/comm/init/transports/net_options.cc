#include "comm/init/transports/net_options.h"

#include <fmt/format.h>

#include <memory>

#include "bootstrap/bootstrap.h"
#include "comm/init/transports/comm_routing.h"
#include "comm/init/transports/message_steps.h"
#include "comm/launch/device_pool.h"
#include "comm/network/network.h"
#include "comm/network/relays.h"
#include "comm/plan/mesh_slots.h"
#include "comm/state/communicator.h"
#include "comm/state/family.h"
#include "comm/state/membership.h"
#include "comm/state/registrations.h"

namespace tutti::comm {

namespace {

std::shared_ptr<const net::NetFamily> netFamily(const ncclComm& comm) {
  const Membership& membership = *comm.membership;
  if (!membership.family) return nullptr;
  return std::make_shared<net::NetFamily>(
      net::NetFamily{.commons = membership.family->netCommons(),
                     .places = membership.places,
                     .farewells = std::make_shared<FamilyFarewells>(membership.family->peers(), membership.places),
                     .numbering = fmt::format("communicator {:#x}", comm.identity.commId)});
}

}  // namespace

net::NetTransportOptions netOptions(const ncclComm& comm) {
  const CommParts& parts = comm.parts;
  net::NetTransportOptions options;
  options.routing = std::make_shared<CommRouting>(comm);
  options.farewells = std::make_shared<CommFarewells>(parts);
  options.deviceOwner = parts.device;
  options.netOwner = parts.network;
  options.family = netFamily(comm);
  options.ledger = options.family ? comm.membership->family->memory() : comm.memory;
  options.relaySecret = relaySecret(*parts.bootstrap);
  options.inPlace = messagesInPlace(comm);
  if (sendsRegistered(comm)) options.registered = comm.registrations->memory();
  options.sharedSlots = sharedNetSlots(*comm.settings, longMessageSteps(comm));
  options.sharedConnections = groupsReceives(comm);
  return options;
}

}  // namespace tutti::comm
