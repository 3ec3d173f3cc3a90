#include "comm/state/peer_wait.h"

#include "bootstrap/bootstrap.h"
#include "comm/state/communicator.h"
#include "comm/state/lost_peer.h"

namespace tutti::comm {

PeerWait::PeerWait(ncclComm& comm) : comm_(comm) {
  if (comm.parts.bootstrap) comm.parts.bootstrap->beginWait();
  comm.lostPeer->beginWait().ignore();
}

PeerWait::~PeerWait() {
  endOfInit(comm_);
}

void PeerWait::endOfInit(ncclComm& comm) {
  comm.lostPeer->endWait();
  if (comm.parts.bootstrap) comm.parts.bootstrap->endWait();
}

KernelWait::KernelWait(ncclComm& comm) : comm_(comm) {
  if (comm.parts.bootstrap) comm.parts.bootstrap->beginWait();
}

KernelWait::~KernelWait() {
  if (comm_.parts.bootstrap) comm_.parts.bootstrap->endWait();
}

}  // namespace tutti::comm
