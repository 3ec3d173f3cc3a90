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

/// As long as it lives kernels run that may wait for any peer: one that gives no sign of life has failed. Whether the
/// communicator has, the watch says, which knows whether they still run. Any thread.
class KernelWait {
 public:
  explicit KernelWait(ncclComm& comm);
  KernelWait(const KernelWait&) = delete;
  ~KernelWait();

 private:
  ncclComm& comm_;
};

}  // namespace tutti::comm
