#include "rank_run.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "members.h"
#include "report.h"

namespace tutti::adversary {

namespace {

void sleepMs(long ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

ncclResult_t stateOf(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
  return asked != ncclSuccess ? asked : state;
}

bool failed(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

/// How long after one communicator has failed an application still waits for word of the others.
constexpr int kOthersMs = 2000;

}  // namespace

void RankRun::stage(const std::string& name, int batch) {
  report(jobRank_, "stage", name + " " + std::to_string(batch));
  deeds_.reached(name, batch);
  if (deeds_.wantsTo("slow", name, batch)) {
    report(jobRank_, "deed", "slow");
    sleepMs(deeds_.delayUs() / 1000);
  }
}

RankEnd RankRun::run() {
  if (!prepare()) {
    report(jobRank_, "cannot", "begin: a call of CUDA failed");
    return RankEnd::CannotBegin;
  }
  if (leavesAt("before", 0)) return leave();
  stage("before");
  if (!initAll()) return endAfterFailure();
  for (int batch = 0; batch < options_.batches; ++batch) {
    if (batch == options_.idleBatch) {
      if (leavesAt("idle", batch)) return leave();
      idle();
    }
    const std::string name = batch == 0 ? "connect" : "collective";
    if (leavesAt(name, batch)) return leave();
    stage(name, batch);
    if (!runBatch(batch)) return wrong_ ? RankEnd::WrongResult : endAfterFailure();
  }
  return destroyAll();
}

bool RankRun::leavesAt(const std::string& name, int batch) const {
  return deeds_.wantsTo("leave", name, batch);
}

RankEnd RankRun::leave() {
  report(jobRank_, "deed", "leave");
  return destroyAll() == RankEnd::Finished ? RankEnd::Left : RankEnd::CleanupFailed;
}

bool RankRun::prepare() {
  if (cudaSetDevice(jobRank_) != cudaSuccess) return false;
  comms_ = std::vector<Comm>(static_cast<std::size_t>(options_.comms));
  for (Comm& comm : comms_) {
    comm.number = static_cast<int>(&comm - comms_.data());
    comm.rank = rankIn(comm.number, jobRank_, options_.size, !options_.ids.empty());
    comm.size = sizeOf(comm.number, options_.size);
    if (!comm.operation.allocate(comm.size) || cudaStreamCreate(&comm.stream) != cudaSuccess) return false;
  }
  return true;
}

bool RankRun::initAll() {
  for (Comm& comm : comms_) {
    if (comm.rank < 0) continue;
    stage("init", comm.number);
    if (!init(comm)) return false;
    report(jobRank_, "ready", std::to_string(comm.number));
    if (!allWell()) return false;
  }
  return true;
}

bool RankRun::idOf(Comm& comm, ncclUniqueId& id) {
  if (options_.ids.empty()) {
    const ncclResult_t result = ncclGetUniqueId(&id);
    if (result != ncclSuccess) fail(comm, result, "ncclGetUniqueId");
    return result == ncclSuccess;
  }
  if (awaitId(options_, comm.number, id)) return true;
  report(jobRank_, "no_id", std::to_string(comm.number) + " no id came from the process that makes it");
  return false;
}

bool RankRun::init(Comm& comm) {
  ncclUniqueId id;
  if (!idOf(comm, id)) return false;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = options_.blocking ? 1 : 0;
  ncclResult_t result = ncclCommInitRankConfig(&comm.handle, comm.size, id, comm.rank, &config);
  if (result == ncclInProgress) result = settle(comm);
  if (result != ncclSuccess) fail(comm, result, "ncclCommInitRankConfig");
  return result == ncclSuccess;
}

ncclResult_t RankRun::settle(const Comm& comm) const {
  const long end = microsecondsNow() + options_.patienceMs * 1000L;
  ncclResult_t state = stateOf(comm.handle);
  while (state == ncclInProgress && microsecondsNow() < end) {
    sleepMs(1);
    state = stateOf(comm.handle);
  }
  return state;
}

RankRun::Comm* RankRun::memberOf(const Operation& operation) {
  Comm& comm = comms_[static_cast<std::size_t>(operation.comm)];
  return comm.rank >= 0 && takesPart(operation, comm.rank) ? &comm : nullptr;
}

bool RankRun::runBatch(int batch) {
  std::vector<int> sizes;
  for (const Comm& comm : comms_) sizes.push_back(comm.size);
  const std::vector<Operation> operations = batchOf(options_.seed, batch, sizes, options_.fewKernels);
  for (const Operation& operation : operations) {
    Comm* comm = memberOf(operation);
    if (comm == nullptr) continue;
    report(jobRank_, "need", std::to_string(comm->number) + " " + nameOf(operation));
    ncclResult_t result = comm->operation.launch(operation, comm->handle, comm->rank, comm->size, comm->stream);
    if (result == ncclInProgress) result = settle(*comm);
    if (result != ncclSuccess) {
      fail(*comm, result, nameOf(operation));
      return false;
    }
  }
  return finish(operations);
}

bool RankRun::busy(const std::vector<Operation>& operations) {
  return std::any_of(operations.begin(), operations.end(), [&](const Operation& operation) {
    const Comm* comm = memberOf(operation);
    return comm != nullptr && cudaStreamQuery(comm->stream) == cudaErrorNotReady;
  });
}

/// Waits as frameworks do: for the streams, and with an eye on all communicators.
bool RankRun::finish(const std::vector<Operation>& operations) {
  const long end = microsecondsNow() + options_.patienceMs * 1000L;
  while (busy(operations)) {
    if (!allWell()) return false;
    if (microsecondsNow() > end) {
      report(jobRank_, "hang", nameOf(operations.front()));
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (!allWell()) return false;
  for (const Operation& operation : operations) {
    const Comm* comm = memberOf(operation);
    if (comm == nullptr) continue;
    const std::string wrong = comm->operation.check(operation, comm->rank, comm->size);
    if (!wrong.empty()) {
      // A communicator that has failed since then owes no result.
      if (!allWell()) return false;
      report(jobRank_, "wrong", wrong);
      wrong_ = true;
      return false;
    }
    report(jobRank_, "done", std::to_string(comm->number));
  }
  return true;
}

/// Nothing is asked of anybody; what the communicators say of themselves is told once it is over.
void RankRun::idle() {
  stage("idle", options_.idleBatch);
  sleepMs(options_.idleMs);
  for (const Comm& comm : comms_)
    if (comm.rank >= 0)
      report(jobRank_, "state", std::to_string(comm.number) + " " + std::to_string(stateOf(comm.handle)));
}

bool RankRun::allWell() {
  bool well = true;
  for (Comm& comm : comms_) {
    if (comm.handle == nullptr || comm.ended) continue;
    const ncclResult_t state = stateOf(comm.handle);
    if (failed(state)) {
      fail(comm, state, "ncclCommGetAsyncError");
      well = false;
    }
  }
  return well;
}

void RankRun::fail(Comm& comm, ncclResult_t result, const std::string& call) {
  if (comm.failed) return;
  comm.failed = true;
  std::string text = ncclGetLastError(comm.handle);
  if (options_.lies) text = "Bootstrap: rank " + std::to_string(comm.rank) + " (host liar, pid 1) died";
  report(jobRank_, "error", std::to_string(comm.number) + " " + std::to_string(result) + " " + call + " | " + text);
}

bool RankRun::end(Comm& comm, const std::string& call) {
  if (comm.handle == nullptr || comm.ended) return true;
  report(jobRank_, "ending", std::to_string(comm.number) + " " + call);
  ncclResult_t result = ncclSuccess;
  if (call == "finalize") {
    result = ncclCommFinalize(comm.handle);
    if (result == ncclInProgress) result = settle(comm);
    if (failed(result) && !comm.failed) fail(comm, result, "ncclCommFinalize");
  }
  result = call == "abort" ? ncclCommAbort(comm.handle) : ncclCommDestroy(comm.handle);
  comm.ended = true;
  report(jobRank_, "ended", std::to_string(comm.number) + " " + call + " " + std::to_string(result));
  return result == ncclSuccess || comm.failed;
}

RankEnd RankRun::endAfterFailure() {
  const Policy policy = options_.policy;
  if (policy == Policy::AbortFailed) {
    for (Comm& comm : comms_)
      if (comm.failed) end(comm, "abort");
    const long until = microsecondsNow() + kOthersMs * 1000L;
    while (allWell() && microsecondsNow() < until) sleepMs(5);
  }
  const std::string call = policy == Policy::Destroy ? "destroy" : policy == Policy::Finalize ? "finalize" : "abort";
  bool clean = true;
  for (Comm& comm : comms_) clean = end(comm, comm.failed ? call : "abort") && clean;
  return clean ? RankEnd::Failed : RankEnd::CleanupFailed;
}

RankEnd RankRun::destroyAll() {
  stage("destroy");
  for (Comm& comm : comms_) {
    if (comm.handle == nullptr || comm.ended) continue;
    report(jobRank_, "ending", std::to_string(comm.number) + " destroy");
    if (const ncclResult_t result = ncclCommDestroy(comm.handle); result != ncclSuccess)
      fail(comm, result, "ncclCommDestroy");
    comm.ended = true;
    report(jobRank_, "ended", std::to_string(comm.number) + " destroy");
  }
  const bool clean = std::none_of(comms_.begin(), comms_.end(), [](const Comm& comm) { return comm.failed; });
  return clean ? RankEnd::Finished : RankEnd::Failed;
}

}  // namespace tutti::adversary
