#include "comm/ending/exit_farewell.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "base/never_destroyed.h"
#include "bootstrap/bootstrap.h"
#include "comm/ending/own_account.h"
#include "comm/launch/launch.h"
#include "comm/network/relays.h"
#include "comm/state/communicator.h"
#include "comm/state/exit_delivery.h"

namespace tutti::comm {

namespace {

void awaitKernels(ncclComm& comm, Deadline deadline) {
  auto pause = std::chrono::microseconds(20);
  while (!comm.abort.raised() && comm.parts.launcher->query() == CUDA_ERROR_NOT_READY && !deadline.expired()) {
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(2000));
  }
}

/// Also where the application has ended its contexts itself.
bool nothingRuns(Launcher& launcher) {
  if (!launcher.mayBeBusy()) return true;
  if (launcher.launching()) return false;
  const CUresult state = launcher.query();
  return state == CUDA_SUCCESS || state == CUDA_ERROR_DEINITIALIZED || state == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/// Others send through this rank, and what it has taken is theirs.
void awaitRelayed(const ncclComm& comm, Deadline deadline) {
  if (!comm.parts.relays) return;
  while (!comm.abort.raised() && !deadline.expired() && !comm.parts.relays->underWay().empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

/// Whether all is done that another thread may have launched while the process ends: by kernels, and by the network
/// after them, for which it waits.
bool isDone(const ncclComm& comm, Deadline deadline) {
  if (comm.parts.launcher->mayBeBusy()) return false;
  while (!comm.parts.progressRests() && !comm.abort.raised() && !deadline.expired()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return comm.parts.progressRests();
}

/// A thread that ended the process while it held the lock does not get it again. (Not a timed_mutex: of its waiting
/// ThreadSanitizer knows nothing, and an application that runs under it would be told of a misuse.)
std::unique_lock<std::mutex> lockBy(std::mutex& mutex, Deadline deadline) {
  std::unique_lock lock(mutex, std::try_to_lock);
  while (!lock.owns_lock() && !deadline.expired()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    static_cast<void>(lock.try_lock());
  }
  return lock;
}

/// Called when the library is unloaded: after exit handlers and destructors of the application, whatever their order.
[[gnu::destructor]] void sayFarewells() {
  ExitFarewell::instance().say();
  // Also where no communicator was ever made here.
  bootstrap::endRoots(Deadline::in(ExitFarewell::kWords));
}

}  // namespace

ExitFarewell& ExitFarewell::instance() {
  static NeverDestroyed<ExitFarewell> farewell;
  return farewell.get();
}

bool ExitFarewell::ours() const {
  return process_.load() == ::getpid();
}

void ExitFarewell::add(ncclComm& comm) {
  const std::lock_guard lock(mutex_);
  // After the driver's own, whose ends therefore come later.
  static const bool registered = std::atexit([] { instance().settle(); }) == 0;
  if (!registered) return;
  if (!ours()) members_.clear();
  process_.store(::getpid());
  members_.push_back({&comm});
}

void ExitFarewell::remove(ncclComm& comm) {
  const std::lock_guard lock(mutex_);
  std::erase_if(members_, [&comm](const Member& member) { return member.comm == &comm; });
}

void ExitFarewell::settle(Member& member, Deadline kernels, Deadline network) {
  ncclComm& comm = *member.comm;
  awaitKernels(comm, kernels);
  // Before the question: what another thread launches from now on makes it another number.
  const std::uint64_t operations = comm.parts.launcher->counts().operations;
  if (!nothingRuns(*comm.parts.launcher)) return;
  ExitDelivery::await(comm, network);
  awaitRelayed(comm, network);
  member.settled = true;
  member.operations = operations;
}

void ExitFarewell::settle() {
  if (!ours()) return;  // before the lock, which may have been held when this process was forked
  const std::unique_lock lock = lockBy(mutex_, Deadline::in(kKernels));
  if (!lock.owns_lock()) return;
  const Deadline kernels = Deadline::in(kKernels);
  const Deadline network = Deadline::in(ExitDelivery::kBound);
  for (Member& member : members_) settle(member, kernels, network);
}

void ExitFarewell::say() {
  if (!ours()) return;
  const Deadline deadline = Deadline::in(kWords);
  const std::unique_lock lock = lockBy(mutex_, deadline);
  if (!lock.owns_lock()) return;
  const Deadline network = Deadline::in(kWords / 4);  // leaves the rest for the words themselves
  for (const Member& member : members_) {
    const Launcher& launcher = *member.comm->parts.launcher;
    RankAccount account = accountWithCalls(*member.comm);
    const bool seenDone = member.settled && member.operations == launcher.counts().operations;
    account.unfinished = !seenDone && !isDone(*member.comm, network);
    member.comm->parts.bootstrap->announceExit(encodeAccount(account));
  }
  for (const Member& member : members_) static_cast<void>(member.comm->parts.bootstrap->awaitSaid(deadline));
}

}  // namespace tutti::comm
