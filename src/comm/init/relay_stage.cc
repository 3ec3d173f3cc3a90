#include "comm/init/relay_stage.h"

#include "bootstrap/bootstrap.h"
#include "comm/network/network.h"
#include "comm/network/relays.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

Status joinRelays(ncclComm& comm) {
  if (comm.identity.nRanks == 1) return {};
  CommParts& parts = comm.parts;
  ASSIGN(parts.relays,
         RankRelays::join({.bootstrap = *parts.bootstrap,
                           .device = parts.device,
                           .network = parts.network,
                           .peers = parts.peers,
                           .rank = comm.identity.rank,
                           .relaysForOthers = parts.network != nullptr && parts.network->nics().relaysForOthers}));
  return {};
}

}  // namespace tutti::comm
