#include "comm/ending/parting.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "comm/connect/channels.h"
#include "comm/connect/shared_connections.h"
#include "comm/launch/graph_refs.h"
#include "comm/state/communicator.h"
#include "comm/state/family.h"
#include "comm/state/family_peers.h"
#include "comm/state/lost_peer.h"
#include "comm/state/membership.h"

namespace tutti::comm {

namespace {

bool allParted(const ncclComm& comm, bool family) {
  if (comm.parts.channels && !comm.parts.channels->parted()) return false;
  return !family || comm.membership->family->connections()->parted();
}

}  // namespace

bool closesInPeace(const ncclComm& comm) {
  if (comm.abort.raised() || comm.lostPeer->heard() || comm.graphs->any()) return false;
  return !comm.membership->family || !comm.membership->family->graphsKeepOthers(comm);
}

void beginParting(ncclComm& comm, bool family) {
  if (comm.parts.channels) comm.parts.channels->part();
  if (family) comm.membership->family->connections()->part();
  comm.parts.wakeProgress();
}

void awaitParted(const ncclComm& comm, bool family) {
  const Deadline deadline = Deadline::in(kPartingBound);
  auto pause = std::chrono::microseconds(20);
  while (!allParted(comm, family) && !comm.abort.raised()) {
    if (deadline.expired()) {
      return info(kDestroy | kNet, "{}: a peer does not take part in the end of connections, which close as they are",
                  describeComm(comm));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(2000));
  }
}

void partFrom(ncclComm& comm, int rank) {
  if (comm.parts.channels) comm.parts.channels->part(rank);
  if (Family* const family = comm.membership->family.get(); family != nullptr) {
    const int place = comm.membership->places[static_cast<std::size_t>(rank)];
    if (family->peers()->hasLeft(place)) family->connections()->part(place);
  }
  comm.parts.wakeProgress();
}

}  // namespace tutti::comm
