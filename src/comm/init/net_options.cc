#include "comm/init/net_options.h"

#include <memory>

#include "bootstrap/bootstrap.h"
#include "comm/init/comm_routing.h"
#include "comm/init/message_steps.h"
#include "comm/launch/device_pool.h"
#include "comm/network/network.h"
#include "comm/network/relays.h"
#include "comm/plan/mesh_slots.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

net::NetTransportOptions netOptions(const ncclComm& comm) {
  const CommParts& parts = comm.parts;
  net::NetTransportOptions options;
  options.routing = std::make_shared<CommRouting>(comm);
  options.farewells = std::make_shared<CommFarewells>(parts);
  options.deviceOwner = parts.device;
  options.ledger = comm.memory;
  options.relaySecret = relaySecret(*parts.bootstrap);
  options.inPlace = messagesInPlace(comm);
  options.sharedSlots = sharedNetSlots(*comm.settings, longMessageSteps(comm));
  options.sharedConnections = groupsReceives(comm);
  return options;
}

}  // namespace tutti::comm
