#include "comm/init/transports/transport_stage.h"

#include "comm/init/transports/net_options.h"
#include "comm/launch/device_pool.h"
#include "comm/network/network.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/communicator.h"
#include "comm/state/family.h"
#include "comm/state/membership.h"
#include "transport/net/transport.h"
#include "transport/p2p/transport.h"
#include "transport/shm/transport.h"

namespace tutti::comm {

void makeTransports(ncclComm& comm) {
  CommParts& parts = comm.parts;
  // Relatives use the same connections.
  const auto& family = comm.membership->family;
  const auto ledger = family ? family->memory() : comm.memory;
  if (family && !family->netCommons()) family->setNetCommons(net::makeNetCommons());
  parts.transports.push_back(
      std::make_unique<p2p::P2pTransport>(*parts.device->device, comm.settings->p2p, parts.device, ledger));
  parts.transports.push_back(
      std::make_unique<shm::ShmTransport>(*parts.device->device, comm.settings->shm, parts.device, ledger));
  if (parts.network) {
    parts.transports.push_back(
        std::make_unique<net::NetTransport>(*parts.device->device, parts.network->net(), netOptions(comm)));
  }
}

}  // namespace tutti::comm
