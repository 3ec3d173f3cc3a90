// What a process still owes its peers when it ends, or drops a graph, after it has destroyed the communicator.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "base/clock.h"

struct ncclComm;

namespace tutti::comm {

/// Kernels that send over a network end when their content lies in slots, which the host empties afterwards. For
/// ncclCommDestroy the host is waited for; but graphs may replay a communicator's operations after it, and then the
/// process may end. Its peers are to get what was sent to them all the same: waits for that when the process ends in
/// order (exit(), or a return from main()). Not for kernels that still run. Communicators that nobody has destroyed:
/// comm/ending/exit_farewell.h. Any thread.
class ExitDelivery {
 public:
  static ExitDelivery& instance();
  /// A peer that is late holds up the end of the process, or of the last graph, as long as a stuck call holds up an
  /// abort.
  static constexpr milliseconds kBound{10'000};

  /// From now on until remove(). For a communicator that graphs have outlived.
  void add(ncclComm& comm);
  /// When it returns, nobody looks at `comm` any more. Harmless for one that was never added.
  void remove(ncclComm& comm);

  /// Whether graphs are left that can launch kernels of communicators that nobody else knows of any more.
  bool mayLaunch();
  /// Whether kernels of such communicators run. Does not wait for them.
  bool runsKernels();

  /// Waits until the network has taken what kernels of `comm` that have ended have sent, at the latest until
  /// `deadline`; then it warns. Not at all where the communicator has failed.
  static void await(ncclComm& comm, Deadline deadline);

 private:
  void atExit();

  std::mutex mutex_;  ///< held while waiting at exit: nobody frees what is looked at
  std::vector<ncclComm*> comms_;
  std::atomic<pid_t> process_{0};  ///< whose exit it is: children by fork() have no engine
};

}  // namespace tutti::comm
