// Beginning and ending the watch over the kernels of a communicator, without knowing the watch.
#pragma once

#include <string>

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

class InitStall;

inline constexpr const char* kWatchThread = "tutti watch";

/// As long as it lives somebody looks whether an init goes on (comm/diagnosis/init_stall.h), which must outlive it.
/// Where no thread can be had nobody does.
class WatchedInit {
 public:
  /// `threadName`: of who looks; "" while settings must not be read.
  explicit WatchedInit(InitStall& init, const std::string& threadName = kWatchThread);
  WatchedInit(const WatchedInit&) = delete;
  WatchedInit& operator=(const WatchedInit&) = delete;
  ~WatchedInit();

 private:
  InitStall& init_;
};

/// What beginWatch() needs, before any kernel may run. Errors: the driver's.
Status prepareWatch(ncclComm& comm);

/// From now on somebody looks after its kernels (watch.h) and after peers that leave (departures.h), and says goodbye
/// for it where its process ends (exit_farewell.h). Errors: ncclSystemError where no thread can be had.
Status beginWatch(ncclComm& comm);

/// Something has happened that concerns the communicators whose kernels run, or a peer has left: the watch looks at
/// once. Never waits.
void lookAtKernels();

/// When it returns, nobody looks after it any more. Harmless where nobody has begun.
void stopWatch(ncclComm& comm);

/// Nobody does so any more, until beginWatch(), and what was known of its connections is forgotten. No kernel may run.
void endWatch(ncclComm& comm);

}  // namespace tutti::comm
