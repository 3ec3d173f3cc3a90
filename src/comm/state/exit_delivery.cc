#include "comm/state/exit_delivery.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/log.h"
#include "base/never_destroyed.h"
#include "comm/connect/channels.h"
#include "comm/connect/shared_connections.h"
#include "comm/launch/graph_refs.h"
#include "comm/launch/launch.h"
#include "comm/state/communicator.h"
#include "comm/state/family.h"
#include "comm/state/lost_peer.h"
#include "comm/state/membership.h"
#include "proxy/group.h"
#include "proxy/task.h"

namespace tutti::comm {

namespace {

/// A sender that is not done, in its own words.
std::string someSender(const ncclComm& comm) {
  for (const ConnectedCounters& end : comm.parts.channels->allEnds()) {
    if (end.task != nullptr && end.task->hold().blockedBy != proxy::BlockedBy::Nobody) return end.task->describe();
  }
  return "who it is for is not known";
}

/// Also what relatives have left to be sent.
bool rests(const ncclComm& comm) {
  const Family* const family = comm.membership->family.get();
  return comm.parts.progress->rests() && (family == nullptr || family->connections()->rests());
}

/// Also where the application need not know.
bool failed(const ncclComm& comm) {
  return comm.abort.raised() || comm.lostPeer->heard();
}

}  // namespace

ExitDelivery& ExitDelivery::instance() {
  static NeverDestroyed<ExitDelivery> delivery;
  return delivery.get();
}

void ExitDelivery::add(ncclComm& comm) {
  const std::lock_guard lock(mutex_);
  // After the driver's own, whose ends therefore come later.
  static const bool registered = std::atexit([] { instance().atExit(); }) == 0;
  if (!registered) return;
  if (process_.load() != ::getpid()) comms_.clear();
  process_.store(::getpid());
  comms_.push_back(&comm);
}

void ExitDelivery::remove(ncclComm& comm) {
  const std::lock_guard lock(mutex_);
  std::erase(comms_, &comm);
}

bool ExitDelivery::mayLaunch() {
  const std::lock_guard lock(mutex_);
  return std::any_of(comms_.begin(), comms_.end(), [](const ncclComm* comm) { return comm->graphs->any(); });
}

bool ExitDelivery::runsKernels() {
  const std::lock_guard lock(mutex_);
  return std::any_of(comms_.begin(), comms_.end(), [](const ncclComm* comm) {
    return comm->parts.launcher && comm->parts.launcher->query() == CUDA_ERROR_NOT_READY;
  });
}

void ExitDelivery::await(ncclComm& comm, Deadline deadline) {
  const CommParts& parts = comm.parts;
  if (!parts.progress || !parts.launcher || failed(comm)) return;
  // Kernels that wait for peers may do so for ever, and nobody has asked for their end. Other threads of a process that
  // ends may still launch some.
  const auto nothingRuns = [&] { return parts.launcher->query() == CUDA_SUCCESS; };
  auto pause = std::chrono::microseconds(20);
  while (nothingRuns() && !rests(comm) && !failed(comm)) {
    if (deadline.expired()) {
      return warn(
          "{}: the last graph with its operations ends, or the process does, and a peer may miss what they sent, for "
          "the network has not taken it all: {}. Keep the process until all ranks are done",
          describeComm(comm), someSender(comm));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(2000));
  }
}

void ExitDelivery::atExit() {
  if (process_.load() != ::getpid()) return;  // before the lock, which may have been held when this process was forked
  const std::lock_guard lock(mutex_);
  const Deadline deadline = Deadline::in(kBound);
  for (ncclComm* comm : comms_) await(*comm, deadline);
}

}  // namespace tutti::comm
