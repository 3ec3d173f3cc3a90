#include "comm/state/family_peers.h"

#include <algorithm>

#include "bootstrap/bootstrap.h"
#include "comm/state/communicator.h"
#include "comm/state/lost_peer.h"
#include "comm/state/membership.h"

namespace tutti::comm {

namespace {

/// Its rank in that communicator; -1: it is in others only.
int rankAt(const ncclComm& comm, int place) {
  const std::vector<int>& places = comm.membership->places;
  const auto found = std::find(places.begin(), places.end(), place);
  return found == places.end() ? -1 : static_cast<int>(found - places.begin());
}

}  // namespace

void FamilyPeers::join(const ncclComm& comm) {
  const std::lock_guard lock(mutex_);
  members_.push_back(&comm);
}

void FamilyPeers::forget(const ncclComm& comm) {
  const std::lock_guard lock(mutex_);
  std::erase(members_, &comm);
}

bool FamilyPeers::hasLeft(int place) const {
  // Of one that has failed, or lost anybody, goodbyes are no longer heard: it is asked where no other one can be.
  bool healthy = false;
  bool failed = false;
  bool leftFailed = false;
  const std::lock_guard lock(mutex_);
  for (const ncclComm* comm : members_) {
    const int rank = rankAt(*comm, place);
    if (rank < 0) continue;
    const bool left = comm->parts.bootstrap == nullptr || comm->parts.bootstrap->hasLeft(rank);
    if (comm->abort.raised() || comm->lostPeer->heard()) {
      failed = true;
      leftFailed = leftFailed || left;
      continue;
    }
    if (!left) return false;
    healthy = true;
  }
  return healthy || !failed || leftFailed;
}

std::string FamilyPeers::exitOf(int place) const {
  const std::lock_guard lock(mutex_);
  for (const ncclComm* comm : members_) {
    const int rank = rankAt(*comm, place);
    if (rank < 0 || comm->parts.bootstrap == nullptr || !comm->parts.bootstrap->hasExited(rank)) continue;
    return comm->parts.bootstrap->describeDeparture(rank);
  }
  return {};
}

}  // namespace tutti::comm
