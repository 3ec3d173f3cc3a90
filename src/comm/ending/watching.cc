#include "comm/ending/watching.h"

#include "base/clock.h"
#include "comm/diagnosis/stalls.h"
#include "comm/ending/departures.h"
#include "comm/ending/watch.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

WatchedInit::WatchedInit(InitStall& init, const std::string& threadName) : init_(init) {
  KernelWatch::instance().watchInit(init, threadName);
}

WatchedInit::~WatchedInit() {
  KernelWatch::instance().unwatchInit(init_);
}

Status prepareWatch(ncclComm& comm) {
  return KernelWatch::prepare(comm);
}

Status beginWatch(ncclComm& comm) {
  return KernelWatch::instance().add(comm);
}

void lookAtKernels() {
  KernelWatch::instance().lookSoon();
}

void stopWatch(ncclComm& comm) {
  KernelWatch::instance().remove(comm);
}

void endWatch(ncclComm& comm) {
  stopWatch(comm);
  if (comm.parts.stalls) comm.parts.stalls->tick(SteadyClock::now(), false);
  if (!comm.parts.departures) return;
  comm.parts.departures->hear();
  comm.parts.departures->tick(SteadyClock::now(), false);
}

}  // namespace tutti::comm
