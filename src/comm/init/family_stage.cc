#include "comm/init/family_stage.h"

#include <algorithm>
#include <numeric>

#include "base/log.h"
#include "comm/launch/device_pool.h"
#include "comm/state/communicator.h"
#include "comm/state/family.h"
#include "comm/state/family_peers.h"
#include "comm/state/membership.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {

std::int32_t offeredPlace(const ncclComm& comm) {
  const Membership& membership = *comm.membership;
  // Its kernels' order is an event of that device.
  const bool can = membership.born && membership.family->device() == comm.parts.device.get();
  return can ? membership.family->place() : -1;
}

Status settleMembership(ncclComm& comm) {
  Membership& membership = *comm.membership;
  if (comm.identity.nRanks == 1) {
    membership = {};  // it has no connections
    return {};
  }
  if (membership.born) {
    for (const topo::PeerInfo& peer : comm.parts.peers) membership.places.push_back(peer.familyRank);
    if (std::find(membership.places.begin(), membership.places.end(), -1) == membership.places.end()) {
      membership.family->peers()->join(comm);
      return {};
    }
    info(kInit, "{}: not all ranks can share connections with the parent: this communicator has its own",
         describeComm(comm));
    membership = {};
  }
  const ncclConfig_t& config = comm.config.values;
  if (config.splitShare == 0 && config.shrinkShare == 0) return {};
  ASSIGN(membership.family, Family::found(comm.parts.device, comm.identity.rank));
  membership.places.resize(static_cast<std::size_t>(comm.identity.nRanks));
  std::iota(membership.places.begin(), membership.places.end(), 0);
  membership.family->peers()->join(comm);
  return {};
}

Status joinFamily(ncclComm& comm) {
  return comm.membership->family ? comm.membership->family->join(comm) : Status();
}

}  // namespace tutti::comm
