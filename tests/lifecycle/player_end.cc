// How a rank ends communicators, interrupts them and lays them to sleep; and graphs, which may outlive them.
#include <algorithm>
#include <chrono>
#include <thread>

#include "lifecycle/library_features.h"
#include "lifecycle/player.h"

namespace lifecycle {

ncclResult_t Player::end(const Deed& deed) {
  const ncclComm_t handle = seat_.find(deed.comm.id);
  switch (deed.kind) {
    case Kind::Finalize:
      return ncclCommFinalize(handle);
    case Kind::Destroy:
      return ncclCommDestroy(handle);
    case Kind::Revoke:
      return ncclCommRevoke(handle, NCCL_REVOKE_DEFAULT);
    case Kind::Suspend:
      return ncclCommSuspend(handle, NCCL_SUSPEND_MEM);
    case Kind::Resume:
      return ncclCommResume(handle);
    case Kind::Abort:
      abortAll(deed.doomed);
      return ncclSuccess;
    default:
      complain("nobody knows how to do this");
  }
}

/// A rank goes through a family in an order of its own.
void Player::abortAll(const std::vector<Comm>& doomed) {
  for (std::size_t i = 0; i < doomed.size(); ++i) {
    const Comm& comm = doomed[(i + static_cast<std::size_t>(rank_)) % doomed.size()];
    if (!isMember(comm)) continue;
    now("aborts communicator " + std::to_string(comm.id));
    expect(ncclCommAbort(seat_.find(comm.id)), ncclSuccess, "ncclCommAbort");
    seat_.drop(comm.id);
  }
  endStuck();
}

/// After a revoke, or a shrink with abort, of one of a family: the others have failed where both were used, and are
/// aborted once everybody is done.
void Player::finishFamily(const Deed& deed) {
  if (deed.kind == Kind::Revoke) endStuck();
  for (const Comm& comm : deed.doomed) {
    const bool both = (deed.comm.worked || deed.stuck) && comm.worked && deed.comm.size() > 1 && comm.size() > 1;
    const bool calls = isMember(deed.comm) && !isExcluded(deed);
    if (both && calls && isMember(comm) && settled(comm.id, "the end of its family") == ncclSuccess)
      complain("communicator " + std::to_string(comm.id) + " of the same family has not failed");
  }
  now("waits until all are done with: " + describe(deed));
  meet(shared_, kMeetingsOfDeed * deed.number + 2, static_cast<int>(deed.participants().size()));
  std::vector<Comm> ended = deed.doomed;
  if (deed.kind == Kind::ShrinkAbort) ended.push_back(deed.comm);
  if (!ended.empty()) abortAll(ended);
}

/// Some of the members register; each an input or an output.
void Player::registerBuffer(const Deed& deed) {
  const auto bit = static_cast<unsigned>(deed.which) >> static_cast<unsigned>(rank_);
  if (bit % 2 == 0) return;
  const Slot& slot = deed.recording >= 0 ? seat_.recording(deed.recording).slot
                                         : slots_[static_cast<std::size_t>(deed.which) % kSlots];
  void* const buffer = bit % 4 == 1 ? slot.memory() : slot.output();
  void*& handle = seat_.registration(deed.registration);
  now(describe(deed));
  expect(ncclCommRegister(seat_.find(deed.comm.id), buffer, slot.bytes(), &handle), ncclSuccess, "ncclCommRegister");
  if (handle == nullptr) complain("ncclCommRegister gives no handle");
}

void Player::deregisterBuffer(const Deed& deed) {
  now(describe(deed));
  expect(ncclCommDeregister(seat_.find(deed.comm.id), seat_.registration(deed.registration)), ncclSuccess,
         "ncclCommDeregister");
  seat_.dropRegistration(deed.registration);
}

void Player::checkSuspended(const Deed& deed) {
  if ((limits_.features & kMemStats) == 0) return;
  std::uint64_t suspended = 2;
  expect(ncclCommMemStats(seat_.find(deed.comm.id), ncclStatGpuMemSuspended, &suspended), ncclSuccess,
         "ncclCommMemStats");
  const std::uint64_t shall = deed.kind == Kind::Suspend ? 1 : 0;
  if (suspended != shall) complain("ncclStatGpuMemSuspended is " + std::to_string(suspended));
}

void Player::record(const Deed& deed) {
  Recording& recording = seat_.recording(deed.recording);
  if (!recording.slot.allocate(limits_.ranks, streams_[0])) complain("there is no device memory");
  if (!recording.slot.prepare(deed.op, deed.comm.id, deed.comm.rankOf(rank_), deed.comm.size())) complain("CUDA fails");
  now("records: " + describe(deed));
  if (cudaStreamBeginCapture(streams_[0], cudaStreamCaptureModeThreadLocal) != cudaSuccess)
    complain("the stream cannot be captured");
  expectStarted(recording.slot.call(seat_.find(deed.comm.id)), deed.comm.blocking, "the call in a capture");
  expect(settled(deed.comm.id, "the call in a capture"), ncclSuccess, "the state afterwards");
  const bool made = cudaStreamEndCapture(streams_[0], &recording.graph) == cudaSuccess &&
                    cudaGraphInstantiate(&recording.exec, recording.graph, 0) == cudaSuccess;
  if (!made) complain("the capture does not become a graph");
  replay(deed);
}

void Player::replay(const Deed& deed) {
  Recording& recording = seat_.recording(deed.recording);
  now("replays: " + describe(deed));
  if (cudaGraphLaunch(recording.exec, streams_[0]) != cudaSuccess) complain("the graph cannot be launched");
  complete(recording.slot);
}

void Player::dropGraph(const Deed& deed) {
  Recording& recording = seat_.recording(deed.recording);
  now("drops a graph: " + describe(deed));
  if (cudaGraphExecDestroy(recording.exec) != cudaSuccess || cudaGraphDestroy(recording.graph) != cudaSuccess)
    complain("the graph cannot be destroyed");
  recording.slot.release();
  seat_.dropRecording(deed.recording);
}

}  // namespace lifecycle
