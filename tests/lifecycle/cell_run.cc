#include "lifecycle/cell_run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "lifecycle/library_features.h"

namespace lifecycle {

namespace {

void sleepMs(long ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

bool failed(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

constexpr long kBusyMs = 30;    // how long outstanding work waits before it begins
constexpr long kNoticeMs = 50;  // how long word of a death is waited for that nobody needs, and that need not come
constexpr long kGrowNoticeMs = 2000;  // a rank that has only aborted its handle may still come: who calls before waits
constexpr long kMeetings = 8;         // of a cell

}  // namespace

CellRun::CellRun(Shared& shared, const Cell& cell, int rank, long number)
    : shared_(shared), cell_(cell), rank_(rank), number_(number), config_(NCCL_CONFIG_INITIALIZER) {
  config_.blocking = cell.blocking ? 1 : 0;
}

CellRun::~CellRun() {
  if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
  if (graph_ != nullptr) cudaGraphDestroy(graph_);
  for (Slot* slot : {&plain_, &pending_, &recorded_}) slot->release();
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
  note(shared_, rank_, 0, number_, "");
}

void CellRun::now(const std::string& what) {
  note(shared_, rank_, 0, number_, describe(cell_) + ": " + what);
}

void CellRun::wrong(const std::string& what) {
  const std::string text = ncclGetLastError(nullptr);
  if (wrong_.empty()) wrong_ = what + (text.empty() ? "" : " (" + text.substr(0, 200) + ")");
}

void CellRun::must(ncclResult_t is, ncclResult_t shall, const std::string& what) {
  if (is != shall) wrong(what + " is " + std::to_string(is) + ", not " + std::to_string(shall));
}

void CellRun::meetAll(int which, int count) {
  now("meeting " + std::to_string(which));
  meet(shared_, number_ * kMeetings + which, count);
}

ncclResult_t CellRun::settle(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess) return ncclInternalError;
    if (state == ncclInProgress) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return state;
}

ncclResult_t CellRun::outcome(ncclResult_t called, ncclComm_t carrier) {
  if (failed(called)) return called;
  if (cell_.blocking && called != ncclSuccess) {
    wrong("a blocking communicator answers 7");
    return called;
  }
  const ncclResult_t state = carrier == nullptr || cell_.blocking ? called : settle(carrier);
  if (child_ == nullptr) return state;
  if (cell_.function != Function::ShrinkAbort && failed(state)) return state;
  parentFailed_ = failed(state);
  return settle(child_);
}

void CellRun::await(Slot& slot, bool look) {
  now("waits for an operation");
  while (!slot.done()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (!look) return slot.forget();
  const std::string bad = slot.look();
  if (!bad.empty()) wrong(bad);
}

ncclResult_t CellRun::reduce(Slot& slot, ncclComm_t comm, int rank, int size, bool wait) {
  Op op;
  op.count = 1000;
  op.number = number_;
  if (!slot.prepare(op, 0, rank, size)) wrong("CUDA fails");
  const ncclResult_t called = slot.call(comm);
  if (failed(called)) {
    slot.forget();
    return called;
  }
  const ncclResult_t state = settle(comm);
  if (!failed(state) && wait) await(slot, true);
  return state;
}

void CellRun::mustReduce(ncclComm_t comm, int rank, int size, const char* what) {
  now(what);
  must(reduce(plain_, comm, rank, size, true), ncclSuccess, what);
}

ncclComm_t CellRun::initComm(int size, long id, int rank) {
  ncclUniqueId unique;
  ncclComm_t comm = nullptr;
  if (rank == 0) {
    must(ncclGetUniqueId(&unique), ncclSuccess, "ncclGetUniqueId");
    publish(shared_, id, unique);
  }
  unique = lifecycle::await(shared_, id);
  const ncclResult_t called = ncclCommInitRankConfig(&comm, size, unique, rank, &config_);
  must(failed(called) ? called : settle(comm), ncclSuccess, "init");
  return comm;
}

void CellRun::prepare() {
  now("prepares");
  cudaSetDevice(rank_);
  if (cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) != cudaSuccess) wrong("there is no stream");
  for (Slot* slot : {&plain_, &pending_, &recorded_})
    if (!slot->allocate(kTableRanks, stream_)) wrong("there is no device memory");
  if (rank_ == kNewcomer) return;
  comm_ = initComm(kMembers, 2 * number_, rank_);
  mustReduce(comm_, rank_, kMembers, "the first operation");
}

void CellRun::record() {
  Op op;
  op.count = 500;
  op.number = number_ + 1;
  if (!recorded_.prepare(op, 0, rank_, kMembers)) wrong("CUDA fails");
  if (cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal) != cudaSuccess) wrong("no capture");
  const ncclResult_t called = recorded_.call(comm_);
  must(failed(called) ? called : settle(comm_), ncclSuccess, "the recorded call");
  if (cudaStreamEndCapture(stream_, &graph_) != cudaSuccess || cudaGraphInstantiate(&exec_, graph_, 0) != cudaSuccess ||
      cudaGraphLaunch(exec_, stream_) != cudaSuccess)
    wrong("the capture does not become a graph");
  await(recorded_, true);
}

/// A process ends as by a crash; a thread cannot, and aborts.
void CellRun::die() {
  if (cell_.processes) ::_exit(0);
  must(ncclCommAbort(comm_), ncclSuccess, "the peer's ncclCommAbort");
  comm_ = nullptr;
}

/// Work of which one rank launches nothing: what gives work up is tried with that.
bool CellRun::neverEnds() const {
  return dead() || cell_.function == Function::Abort || cell_.function == Function::Revoke ||
         cell_.function == Function::ShrinkAbort;
}

void CellRun::beginWork() {
  if (neverEnds() && last()) return;
  const auto sleep = [](void*) { sleepMs(kBusyMs); };
  if (cudaLaunchHostFunc(stream_, sleep, nullptr) != cudaSuccess) wrong("CUDA fails");
  must(reduce(pending_, comm_, rank_, kMembers, false), ncclSuccess, "the outstanding operation");
}

/// Word of a death must come where work needs the dead.
void CellRun::awaitNotice() {
  now("waits for word of the death");
  // Of a process that is gone word may come before the call or in it.
  const long growNotice = cell_.processes ? 0 : kGrowNoticeMs;
  const long notice = cell_.function == Function::Grow ? growNotice : kNoticeMs;
  const long until = nowMs() + (works() ? kMostMs : notice);
  ncclResult_t state = ncclSuccess;
  while (state == ncclSuccess && nowMs() < until) {
    ncclCommGetAsyncError(comm_, &state);
    sleepMs(1);
  }
  if (works()) must(state, ncclRemoteError, "the state with outstanding work of a dead peer");
}

void CellRun::enterSituation() {
  now("enters the situation");
  if (cell_.situation == Situation::LiveGraph) record();
  if (cell_.function == Function::Resume) {
    must(outcome(ncclCommSuspend(comm_, NCCL_SUSPEND_MEM), comm_), ncclSuccess, "ncclCommSuspend");
  }
  if (cell_.function == Function::Deregister) must(registerBuffer(), ncclSuccess, "ncclCommRegister");
  if (works()) beginWork();
  meetAll(0, kMembers);
  if (!dead()) return;
  if (last()) return die();
  awaitNotice();
}

void CellRun::followRevoke() {
  must(reduce(plain_, comm_, rank_, kMembers, true), ncclInvalidUsage, "an operation on what was revoked");
  must(ncclCommFinalize(comm_), ncclInvalidArgument, "ncclCommFinalize of what was revoked");
  if (!dead() || (shared_.features & kShrink) == 0) return;
  int excluded = kMembers - 1;
  must(outcome(ncclCommShrink(comm_, &excluded, 1, &child_, nullptr, NCCL_SHRINK_DEFAULT), comm_), ncclSuccess,
       "ncclCommShrink of what was revoked");
  if (child_ != nullptr) mustReduce(child_, rank_, kMembers - 1, "an operation of the survivors");
}

void CellRun::followSuspend() {
  must(reduce(plain_, comm_, rank_, kMembers, true), ncclInvalidUsage, "an operation on what is suspended");
  must(outcome(ncclCommResume(comm_), comm_), ncclSuccess, "ncclCommResume");
}

void CellRun::followBirth() {
  const bool shrinks = cell_.function == Function::Shrink || cell_.function == Function::ShrinkAbort;
  const int size = cell_.function == Function::Grow ? kTableRanks : shrinks || dead() ? kMembers - 1 : kMembers;
  mustReduce(child_, rank_, size, "an operation of the new communicator");
}

void CellRun::followUp(ncclResult_t answer) {
  now("looks at what has become of it");
  if (works() && pending_.busy()) await(pending_, !neverEnds());
  if (answer != ncclSuccess) return;
  const Function f = cell_.function;
  if (f == Function::Revoke) return followRevoke();
  if (f == Function::Suspend) followSuspend();
  if (child_ != nullptr) followBirth();
  const bool shrinks = f == Function::Shrink || f == Function::ShrinkAbort;
  const bool usable = f != Function::ShrinkAbort && f != Function::Finalize && comm_ != nullptr && !dead();
  if (usable && f != Function::Shrink) mustReduce(comm_, rank_, kMembers, "an operation afterwards");
  const bool playable = exec_ != nullptr && f != Function::Abort && !shrinks && f != Function::Finalize;
  if (!playable) return;
  if (cudaGraphLaunch(exec_, stream_) != cudaSuccess) wrong("the graph cannot be launched");
  await(recorded_, true);
}

/// Ends what is left: by destroy where all is well, else by abort, which waits for nobody.
void CellRun::leave(ncclResult_t answer) {
  now("ends its communicators");
  const bool well = answer == ncclSuccess && !dead() && wrong_.empty() && cell_.function != Function::ShrinkAbort;
  if (comm_ != nullptr && handle_ != nullptr)
    must(ncclCommDeregister(comm_, handle_), ncclSuccess, "ncclCommDeregister afterwards");
  const long began = nowMs();
  for (ncclComm_t comm : {child_, comm_}) {
    if (comm == nullptr) continue;
    must(well ? ncclCommDestroy(comm) : ncclCommAbort(comm), ncclSuccess, "the end afterwards");
  }
  if (nowMs() - began > kMostMs) wrong("the end afterwards takes " + std::to_string(nowMs() - began) + " ms");
  for (Slot* slot : {&plain_, &pending_})
    if (slot->busy()) await(*slot, false);
}

void CellRun::callAndJudge() {
  now("calls");
  const long began = nowMs();
  answer_ = call();
  const Expected& shall = expected(cell_.function, cell_.situation);
  if (std::count(shall.answers.begin(), shall.answers.end(), *answer_) == 0)
    wrong("answers " + std::to_string(*answer_) + ", not " + codesOf(shall));
  if (nowMs() - began > kMostMs) wrong("takes " + std::to_string(nowMs() - began) + " ms");
}

std::string CellRun::run() {
  prepare();
  if (rank_ != kNewcomer) enterSituation();
  if (acts() && wrong_.empty()) callAndJudge();
  if (answer_ && wrong_.empty()) followUp(*answer_);
  if (!(dead() && last())) meetAll(1, kTableRanks - (dead() ? 1 : 0));
  leave(answer_.value_or(ncclSuccess));
  if (wrong_.empty() && parentFailed_) wrong_ = "the parent's state is not 0 after its shrink";
  return wrong_;
}

}  // namespace lifecycle
