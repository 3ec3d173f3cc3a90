// Where this rank waits for its peers.
#pragma once

struct ncclComm;

namespace tutti::comm {

/// As long as it lives, the failure of a peer is one of the communicator, which every wait looks at; so is one of
/// before. The communicator has joined its bootstrap. Any thread.
class PeerWait {
 public:
  explicit PeerWait(ncclComm& comm);
  PeerWait(const PeerWait&) = delete;
  ~PeerWait();

  /// The init is over, which is a wait from the communicator's first moment on.
  static void endOfInit(ncclComm& comm);

 private:
  ncclComm& comm_;
};

}  // namespace tutti::comm
