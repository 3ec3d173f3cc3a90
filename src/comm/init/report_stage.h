// What init does so that people can ask about the job (docs/ras.md). Nothing here fails, or waits for a peer.
#pragma once

struct ncclComm;

namespace tutti::topo {
struct PeerInfo;
}

namespace tutti::comm {

/// Before this rank joins: from now on clients are answered.
void startReports(const ncclComm& comm);

/// How other processes reach this one, into what this rank says of itself.
void offerReports(const ncclComm& comm, topo::PeerInfo& self);

/// Once all have said so: this process knows theirs, and the communicator is in reports until its end.
void listForReports(ncclComm& comm);

}  // namespace tutti::comm
