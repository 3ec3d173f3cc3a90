// A kernel that fails on one device would leave the other ranks waiting: nobody else notices. One thread of the process
// looks after the kernels of all its communicators.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/threads/thread.h"
#include "comm/diagnosis/init_stall.h"
#include "comm/ending/circle_watch.h"
#include "comm/ending/metrics_service.h"
#include "comm/ending/stall_service.h"

struct ncclComm;

namespace tutti::comm {

/// Asks four times a second whether the device still works for every communicator that has launched something; where it
/// does not, the communicator fails (ncclUnhandledCudaError) and its peers are told; and whether operations still move
/// (comm/diagnosis/stalls.h). Any thread.
class KernelWatch {
 public:
  static KernelWatch& instance();

  /// Before any kernel of `comm` may run: takes memory, for which the driver may wait for kernels. Errors: the
  /// driver's.
  static Status prepare(ncclComm& comm);
  /// From now on until remove(); also over its peers that leave (departures.h), and for the end of the process
  /// (exit_farewell.h). `comm` is initialised and prepared. ncclSystemError where no thread can be had.
  Status add(ncclComm& comm);
  /// From now on until unwatchInit(), which must come: whether an init goes on. Where no thread can be had nobody
  /// looks. `threadName`: of the thread, where it does not run yet.
  void watchInit(InitStall& init, const std::string& threadName);
  /// When it returns, nobody looks at `init` any more.
  void unwatchInit(InitStall& init);
  /// When it returns, nobody looks at `comm` any more. Harmless for one that was never added.
  void remove(ncclComm& comm);
  /// Has it look now. Never waits, takes no locks.
  void lookSoon();
  /// Whether it looks after no communicator.
  bool empty();
  /// Whether any of the communicators that it looks after has kernels running. Does not wait for them.
  bool runsKernels();

 private:
  Status lookAfter(ncclComm& comm);
  Status runThread(const std::string& name);
  void restIfIdle();
  void run();
  StallLimits hangLimits() const;
  void lookAtAll();

  std::mutex life_;   ///< one add or remove at a time
  std::mutex mutex_;  ///< the three below; held while looking, which never waits
  std::vector<ncclComm*> comms_;
  std::vector<InitStall*> inits_;
  bool stop_ = false;
  std::atomic<bool> asked_{false};
  StallService service_;    ///< the thread's
  MetricsService metrics_;  ///< likewise
  HungCalls hungCalls_;     ///< likewise
  CircleWatch circles_;     ///< likewise
  std::condition_variable wake_;
  Thread thread_;  ///< runs while there are communicators
};

}  // namespace tutti::comm
