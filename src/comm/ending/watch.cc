#include "comm/ending/watch.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/log.h"
#include "base/never_destroyed.h"
#include "base/threads/shortage.h"
#include "comm/diagnosis/call_exchange.h"
#include "comm/diagnosis/stalls.h"
#include "comm/ending/call_watch.h"
#include "comm/ending/departures.h"
#include "comm/ending/exit_farewell.h"
#include "comm/ending/revoke.h"
#include "comm/ending/watching.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/launch.h"
#include "comm/state/communicator.h"
#include "comm/state/lost_peer.h"
#include "comm/state/peer_wait.h"
#include "comm/state/registrations.h"
#include "gpu/context.h"

namespace tutti::comm {

namespace {

constexpr auto kInterval = std::chrono::milliseconds(250);

/// Success, not finished yet, or a process on its way out: nothing to tell anybody.
bool harmless(CUresult result) {
  return result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY || result == CUDA_ERROR_DEINITIALIZED ||
         result == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/// Kernels that run may wait for any peer. Whether the communicator has failed for that.
bool needPeers(ncclComm& comm, bool kernelsRun) {
  std::shared_ptr<KernelWait>& wait = comm.progress.kernels;
  if (!kernelsRun) {
    wait.reset();
  } else if (wait == nullptr) {
    wait = std::make_shared<KernelWait>(comm);
  }
  // Only here: at the moment of the word kernels that ran at the last look may have ended, and then nothing is lost.
  if (kernelsRun && comm.lostPeer->heard()) comm.lostPeer->need().ignore();
  return comm.abort.raised();
}

void look(ncclComm& comm) {
  if (comm.abort.raised()) return;
  comm.registrations->tidy();
  Launcher& launcher = *comm.parts.launcher;
  const CUresult result = launcher.mayBeBusy() ? launcher.query() : CUDA_SUCCESS;
  if (harmless(result)) {
    const bool kernelsRun = result == CUDA_ERROR_NOT_READY;
    if (needPeers(comm, kernelsRun)) return;
    if (comm.parts.stalls) comm.parts.stalls->tick(SteadyClock::now(), kernelsRun);
    if (comm.parts.departures) comm.parts.departures->hear();
    compareCalls(comm, SteadyClock::now());
    heedRevokedPeers(comm, SteadyClock::now(), kernelsRun);
    if (comm.abort.raised()) return;
    if (comm.parts.departures) comm.parts.departures->tick(SteadyClock::now(), kernelsRun);
    return;
  }
  failComm(comm,
           fail(ncclUnhandledCudaError,
                "{}: a kernel failed on the device: Cuda failure {} {}. The last one that "
                "this communicator launched is {}. Nothing of this process on that device works any more; end the "
                "communicator with ncclCommAbort",
                describeComm(comm), static_cast<int>(result),
                gpu::describeCu(comm.parts.device->device->driver(), result), launcher.lastLaunch()));
}

}  // namespace

KernelWatch& KernelWatch::instance() {
  static NeverDestroyed<KernelWatch> watch;
  return watch.get();
}

Status KernelWatch::prepare(ncclComm& comm) {
  if (comm.identity.nRanks == 1) return {};
  ASSIGN(comm.parts.departures, DepartureWatch::create(comm));
  return {};
}

Status KernelWatch::add(ncclComm& comm) {
  TRY(lookAfter(comm));
  if (comm.identity.nRanks > 1) ExitFarewell::instance().add(comm);
  return {};
}

Status KernelWatch::lookAfter(ncclComm& comm) {
  const std::lock_guard life(life_);
  {
    const std::lock_guard lock(mutex_);
    comms_.push_back(&comm);
    comm.calls->watched(true);
    stop_ = false;
  }
  const Status started = runThread(kWatchThread);
  if (started.ok()) return {};
  const std::lock_guard lock(mutex_);
  std::erase(comms_, &comm);
  comm.calls->watched(false);
  return started;
}

Status KernelWatch::runThread(const std::string& name) {
  if (thread_.running()) return {};
  ASSIGN(thread_, Thread::start(name, [this] { run(); }));
  return {};
}

void KernelWatch::watchInit(InitStall& init, const std::string& threadName) {
  const std::lock_guard life(life_);
  {
    const std::lock_guard lock(mutex_);
    inits_.push_back(&init);
    stop_ = false;
  }
  const ErrorsAsInfo quiet;  // whoever cannot do without the thread says so later
  ignoringShortage([&] { runThread(threadName).ignore(); });
}

void KernelWatch::unwatchInit(InitStall& init) {
  const std::lock_guard life(life_);
  {
    const std::lock_guard lock(mutex_);
    std::erase(inits_, &init);
  }
  restIfIdle();
}

void KernelWatch::restIfIdle() {
  {
    const std::lock_guard lock(mutex_);
    if (!comms_.empty() || !inits_.empty()) return;
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void KernelWatch::remove(ncclComm& comm) {
  ExitFarewell::instance().remove(comm);
  const std::lock_guard life(life_);
  {
    const std::lock_guard lock(mutex_);
    std::erase(comms_, &comm);
    comm.calls->watched(false);
    comm.progress.kernels.reset();
  }
  restIfIdle();
}

void KernelWatch::lookSoon() {
  asked_.store(true);
  wake_.notify_all();
}

bool KernelWatch::empty() {
  const std::lock_guard lock(mutex_);
  return comms_.empty();
}

bool KernelWatch::runsKernels() {
  const std::lock_guard lock(mutex_);
  return std::any_of(comms_.begin(), comms_.end(), [](const ncclComm* comm) {
    Launcher& launcher = *comm->parts.launcher;
    return launcher.mayBeBusy() && launcher.query() == CUDA_ERROR_NOT_READY;
  });
}

void KernelWatch::run() {
  const OwnLastError own;  // what it finds out is published by failComm()
  std::unique_lock lock(mutex_);
  ignoringShortage([this] {
    service_.open();
    metrics_.open();
  });
  while (!stop_) {
    wake_.wait_for(lock, kInterval, [this] { return stop_ || asked_.load(); });
    asked_.store(false);
    if (stop_) continue;
    ignoringShortage([this] { lookAtAll(); });  // next time, perhaps
  }
  ignoringShortage([this] {
    service_.close();
    metrics_.close();
  });
}

void KernelWatch::lookAtAll() {
  for (ncclComm* comm : comms_) look(*comm);
  const auto now = SteadyClock::now();
  circles_.tick(comms_, now);
  std::vector<const ActivitySlot*> told;
  for (InitStall* init : inits_) {
    init->tick(now);
    told.push_back(&init->thread());
  }
  hungCalls_.tick(now, hangLimits(), told);
  service_.serve(comms_, now, [&] {
    std::vector<std::string> lines = hungCalls_.lines(now);
    for (const InitStall* init : inits_) lines.push_back(init->line(now));
    return lines;
  });
  metrics_.serve(comms_, now);
}

/// The shortest time after which anybody wants to hear of a stall.
StallLimits KernelWatch::hangLimits() const {
  StallLimits limits;
  for (const ncclComm* comm : comms_) limits = limits.shorterOf(comm->options.stall);
  for (const InitStall* init : inits_) limits = limits.shorterOf(init->limits());
  return limits;
}

}  // namespace tutti::comm
