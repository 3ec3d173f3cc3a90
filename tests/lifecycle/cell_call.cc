// The call of a cell, by its function.
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "lifecycle/cell_run.h"

namespace lifecycle {

/// Whether this rank makes the call of the cell.
bool CellRun::acts() const {
  if (rank_ == kNewcomer) return cell_.function == Function::Grow && !dead();
  if (!last()) return true;
  return !dead() && cell_.function != Function::Shrink && cell_.function != Function::ShrinkAbort;
}

ncclResult_t CellRun::end() {
  switch (cell_.function) {
    case Function::Finalize:
      return outcome(ncclCommFinalize(comm_), comm_);
    case Function::Destroy:
      return ncclCommDestroy(std::exchange(comm_, nullptr));
    default:
      return ncclCommAbort(std::exchange(comm_, nullptr));
  }
}

ncclResult_t CellRun::pause() {
  switch (cell_.function) {
    case Function::Revoke:
      return outcome(ncclCommRevoke(comm_, NCCL_REVOKE_DEFAULT), comm_);
    case Function::Suspend:
      return outcome(ncclCommSuspend(comm_, NCCL_SUSPEND_MEM), comm_);
    default:
      return outcome(ncclCommResume(comm_), comm_);
  }
}

ncclResult_t CellRun::grow() {
  ncclUniqueId id;
  if (rank_ == kNewcomer) {
    id = lifecycle::await(shared_, 2 * number_ + 1);
    return outcome(ncclCommGrow(nullptr, kTableRanks, &id, kNewcomer, &child_, &config_), nullptr);
  }
  if (rank_ == 0) {
    if (const ncclResult_t made = ncclCommGetUniqueId(comm_, &id); made != ncclSuccess) return made;
    publish(shared_, 2 * number_ + 1, id);
  }
  return outcome(ncclCommGrow(comm_, kTableRanks, rank_ == 0 ? &id : nullptr, -1, &child_, &config_), nullptr);
}

ncclResult_t CellRun::askStatistics() {
  std::uint64_t total = 0;
  std::uint64_t suspended = 1;
  const ncclResult_t answer = ncclCommMemStats(comm_, ncclStatGpuMemTotal, &total);
  if (answer != ncclSuccess) return answer;
  must(ncclCommMemStats(comm_, ncclStatGpuMemSuspended, &suspended), ncclSuccess, "ncclStatGpuMemSuspended");
  if (total == 0 || suspended != 0) wrong("the statistics are not those of a communicator that is in use");
  return answer;
}

/// What is told depends on whether anything has failed.
ncclResult_t CellRun::askState() {
  ncclResult_t state = ncclInProgress;
  const ncclResult_t answer = ncclCommGetAsyncError(comm_, &state);
  const bool fits = cell_.situation == Situation::DeadPeerWork
                        ? state == ncclRemoteError
                        : state == ncclSuccess || (dead() && state == ncclRemoteError);
  if (!fits) wrong("tells " + std::to_string(state));
  return answer;
}

/// The buffer that an operation uses at the moment, where there is one.
ncclResult_t CellRun::registerBuffer() {
  const Slot& slot = cell_.situation == Situation::LiveGraph ? recorded_ : works() ? pending_ : plain_;
  const ncclResult_t answer = ncclCommRegister(comm_, slot.memory(), slot.bytes(), &handle_);
  if (answer == ncclSuccess && handle_ == nullptr) wrong("ncclCommRegister gives no handle");
  return answer;
}

/// Ends with the state where the operation has begun, for it may learn only then that a peer is missing.
ncclResult_t CellRun::operate() {
  const ncclResult_t began = reduce(plain_, comm_, rank_, kMembers, !dead());
  if (began != ncclSuccess || !dead()) return began;
  const long until = nowMs() + kMostMs;
  ncclResult_t state = ncclSuccess;
  while (state == ncclSuccess && nowMs() < until) {
    ncclCommGetAsyncError(comm_, &state);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return state;
}

ncclResult_t CellRun::use() {
  ncclUniqueId id;
  switch (cell_.function) {
    case Function::GetUniqueId:
      return ncclCommGetUniqueId(comm_, &id);
    case Function::MemStats:
      return askStatistics();
    case Function::Register:
      return registerBuffer();
    case Function::Deregister:
      return ncclCommDeregister(comm_, std::exchange(handle_, nullptr));
    case Function::AllReduce:
      return operate();
    default:
      return askState();
  }
}

ncclResult_t CellRun::call() {
  std::vector<int> excluded = {kMembers - 1};
  const int flags = cell_.function == Function::ShrinkAbort ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT;
  switch (cell_.function) {
    case Function::Init:
      child_ = initComm(dead() ? kMembers - 1 : kMembers, 2 * number_ + 1, rank_);
      return child_ == nullptr ? ncclInternalError : settle(child_);
    case Function::Split:
      return outcome(ncclCommSplit(comm_, 0, rank_, &child_, nullptr), comm_);
    case Function::Shrink:
    case Function::ShrinkAbort:
      return outcome(ncclCommShrink(comm_, excluded.data(), 1, &child_, nullptr, flags), comm_);
    case Function::Grow:
      return grow();
    case Function::Revoke:
    case Function::Suspend:
    case Function::Resume:
      return pause();
    case Function::Finalize:
    case Function::Destroy:
    case Function::Abort:
      return end();
    default:
      return use();
  }
}

}  // namespace lifecycle
