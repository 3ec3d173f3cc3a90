#include "comm/init/peer_stage.h"

#include "bootstrap/bootstrap.h"
#include "comm/agreement/own_machine.h"
#include "comm/agreement/peer_table.h"
#include "comm/init/collnet_stage.h"
#include "comm/init/family_stage.h"
#include "comm/init/report_stage.h"
#include "comm/launch/device_pool.h"
#include "comm/state/communicator.h"
#include "gpu/context.h"
#include "gpu/kernels.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"
#include "trace/on.h"

namespace tutti::comm {

Status meetPeers(ncclComm& comm, const OwnMachine& machine) {
  CommParts& parts = comm.parts;
  ASSIGN(topo::PeerInfo self,
         describeSelf(*parts.device->device, *comm.settings, comm.identity.rank, comm.identity.nRanks));
  self.machineHash = machine.hash;
  self.collNetDevices = collNetDevices(comm);
  self.familyRank = offeredPlace(comm);
  offerReports(comm, self);
  self.traced = trace::on() ? 1 : 0;
  ASSIGN(parts.peers, gatherPeers(*parts.bootstrap, self));
  listForReports(comm);
  TRY(settleMembership(comm));
  if (!comm.options.allowRanksOfOneDevice) TRY(refuseSharedDevices(parts.peers));
  parts.layout = std::make_unique<topo::RankLayout>(comm.identity.rank, parts.peers);
  return {};
}

Status loadSharedKernels(ncclComm& comm) {
  if (!sharesDeviceInProcess(comm.parts.peers, comm.identity.rank)) return {};
  return comm.parts.device->kernels->loadAll();
}

}  // namespace tutti::comm
