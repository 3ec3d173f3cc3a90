#include "differential/player.h"

#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "bench/datatypes.h"
#include "differential/calls.h"

namespace differential {
namespace {

ncclComm_t commOf(const Operation& operation, const Seat& seat) {
  return seat.comms[static_cast<std::size_t>(operation.comm)];
}

cudaStreamCaptureMode modeOf(Capture capture) {
  if (capture == Capture::Global) return cudaStreamCaptureModeGlobal;
  return capture == Capture::ThreadLocal ? cudaStreamCaptureModeThreadLocal : cudaStreamCaptureModeRelaxed;
}

/// Also while other streams and threads capture.
cudaGraphExec_t makeReady(cudaGraph_t graph) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  cudaGraphExec_t exec = nullptr;
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  return exec;
}

/// What follows on the other streams waits for the first.
void forkStreams(const Seat& seat) {
  CUDA_CHECK(cudaEventRecord(seat.events[0], seat.streams[0]));
  for (std::size_t s = 1; s < seat.streams.size(); ++s)
    CUDA_CHECK(cudaStreamWaitEvent(seat.streams[s], seat.events[0], 0));
}

/// What follows on the first waits for the others.
void joinStreams(const Seat& seat) {
  for (std::size_t s = 1; s < seat.streams.size(); ++s) {
    CUDA_CHECK(cudaEventRecord(seat.events[s], seat.streams[s]));
    CUDA_CHECK(cudaStreamWaitEvent(seat.streams[0], seat.events[s], 0));
  }
}

}  // namespace

Player::Player(bench::Worker& worker, const Layout& layout, const ncclUniqueId* ids)
    : worker_(worker), layout_(layout) {
  for (const bench::Rank& rank : worker.ranks()) {
    CUDA_CHECK(cudaSetDevice(rank.device));
    Seat seat;
    seat.rank = rank.rank;
    seat.device = rank.device;
    seat.arena = static_cast<std::uint8_t*>(rank.send);
    seat.comms.resize(layout.comms.size());
    seat.comms[0] = rank.comm;
    seat.streams.resize(static_cast<std::size_t>(layout.streams));
    seat.events.resize(seat.streams.size());
    for (cudaStream_t& stream : seat.streams) CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (cudaEvent_t& event : seat.events) CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    seats_.push_back(std::move(seat));
  }
  join(ids);
}

Player::~Player() {
  for (const auto& [number, recordings] : recordings_) {
    for (const Recording& recording : recordings) {
      cudaGraphExecDestroy(recording.exec);
      cudaGraphDestroy(recording.graph);
    }
  }
  for (Seat& seat : seats_) {
    cudaSetDevice(seat.device);
    for (std::size_t c = 1; c < seat.comms.size(); ++c) ncclCommDestroy(seat.comms[c]);
    for (cudaEvent_t event : seat.events) cudaEventDestroy(event);
    for (cudaStream_t stream : seat.streams) cudaStreamDestroy(stream);
  }
}

void Player::join(const ncclUniqueId* ids) {
  for (std::size_t c = 1; c < layout_.comms.size(); ++c) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = layout_.blocking[c] ? 1 : 0;
    NCCL_CHECK(ncclGroupStart());
    for (Seat& seat : seats_) {
      const int rank = layout_.rankIn(static_cast<int>(c), seat.rank);
      if (rank < 0) continue;
      CUDA_CHECK(cudaSetDevice(seat.device));
      const int ranks = static_cast<int>(layout_.comms[c].size());
      const ncclResult_t result = ncclCommInitRankConfig(&seat.comms[c], ranks, ids[c - 1], rank, &config);
      if (result != ncclInProgress) NCCL_CHECK(result);
    }
    finish(ncclGroupEnd());
  }
}

/// Waits for what goes on without the caller.
void Player::finish(ncclResult_t result) {
  if (result != ncclInProgress) {
    NCCL_CHECK(result);
    return;
  }
  for (const Seat& seat : seats_) {
    for (ncclComm_t comm : seat.comms) {
      ncclResult_t state = ncclInProgress;
      while (comm != nullptr && state == ncclInProgress) {
        NCCL_CHECK(ncclCommGetAsyncError(comm, &state));
        if (state == ncclInProgress) std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
      if (comm != nullptr) NCCL_CHECK(state);
    }
  }
}

/// The other streams wait for it as well.
void Player::upload(const Round& round, const Seat& seat) {
  const auto& image = round.before[static_cast<std::size_t>(seat.rank)];
  CUDA_CHECK(cudaSetDevice(seat.device));
  CUDA_CHECK(cudaMemcpyAsync(seat.arena, image.data(), image.size(), cudaMemcpyHostToDevice, seat.streams[0]));
  forkStreams(seat);
}

/// The factors of user's operators lie in the arena, or on the host in its first image; made before the group.
void Player::makeOperators(const Round& round, const Group& group) {
  operators_.clear();
  for (const Operation& operation : group.operations) {
    for (const Seat& seat : seats_) {
      const int rank = layout_.rankIn(operation.comm, seat.rank);
      const bool needed = rank >= 0 && !operation.scalar.empty();
      operators_.push_back(operation.op);
      if (!needed) continue;
      const std::size_t place = operation.scalar[static_cast<std::size_t>(rank)].offset;
      const auto& image = round.before[static_cast<std::size_t>(seat.rank)];
      std::array<std::uint8_t, 8> factor{};
      std::memcpy(factor.data(), image.data() + place, bench::typeSize(operation.type));
      void* const onDevice = seat.arena + place;
      NCCL_CHECK(ncclRedOpCreatePreMulSum(
          &operators_.back(), operation.scalarOnDevice ? onDevice : factor.data(), operation.type,
          operation.scalarOnDevice ? ncclScalarDevice : ncclScalarHostImmediate, commOf(operation, seat)));
    }
  }
}

void Player::dropOperators(const Group& group) {
  std::size_t i = 0;
  for (const Operation& operation : group.operations) {
    for (const Seat& seat : seats_) {
      const ncclRedOp_t op = operators_[i++];
      if (!operation.scalar.empty() && op != kPreMulSum) NCCL_CHECK(ncclRedOpDestroy(op, commOf(operation, seat)));
    }
  }
}

/// The calls of one operation on one of this thread's ranks; nothing where that is no member.
ncclResult_t Player::issueOne(const Group& group, std::size_t index, std::size_t seatIndex) {
  const Operation& operation = group.operations[index];
  const Seat& seat = seats_[seatIndex];
  const int rank = layout_.rankIn(operation.comm, seat.rank);
  if (rank < 0) return ncclSuccess;
  CUDA_CHECK(cudaSetDevice(seat.device));
  return call(operation, {rank, seat.arena, commOf(operation, seat), operators_[index * seats_.size() + seatIndex],
                          seat.streams[static_cast<std::size_t>(operation.stream)]});
}

void Player::issue(const Round& round, const Group& group) {
  const bool grouped = !group.bare || seats_.size() > 1;
  makeOperators(round, group);
  if (!grouped) {
    finish(issueOne(group, 0, 0));
    return dropOperators(group);
  }
  NCCL_CHECK(ncclGroupStart());
  if (group.nested) NCCL_CHECK(ncclGroupStart());
  const std::size_t calls = group.operations.size() * seats_.size();
  for (std::size_t i = 0; i < calls; ++i) {
    const std::size_t index = group.byRank ? i % group.operations.size() : i / seats_.size();
    const std::size_t seat = group.byRank ? i / group.operations.size() : i % seats_.size();
    const ncclResult_t result = issueOne(group, index, seat);
    if (result != ncclInProgress) NCCL_CHECK(result);
  }
  if (group.nested) NCCL_CHECK(ncclGroupEnd());
  finish(ncclGroupEnd());
  dropOperators(group);
}

void Player::record(const Round& round) {
  auto& recordings = recordings_[round.number];
  for (const Seat& seat : seats_) {
    CUDA_CHECK(cudaSetDevice(seat.device));
    CUDA_CHECK(cudaStreamBeginCapture(seat.streams[0], modeOf(round.capture)));
    forkStreams(seat);
  }
  for (const Group& group : round.groups) issue(round, group);
  for (const Seat& seat : seats_) {
    CUDA_CHECK(cudaSetDevice(seat.device));
    joinStreams(seat);
    Recording recording{};
    CUDA_CHECK(cudaStreamEndCapture(seat.streams[0], &recording.graph));
    recording.exec = makeReady(recording.graph);
    recordings.push_back(recording);
  }
}

void Player::play(const Round& round) {
  const bool captured = round.capture != Capture::None;
  if (captured && recordings_.count(round.number) == 0) record(round);
  for (const Seat& seat : seats_) upload(round, seat);
  if (captured) {
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      CUDA_CHECK(cudaSetDevice(seats_[i].device));
      CUDA_CHECK(cudaGraphLaunch(recordings_[round.number][i].exec, seats_[i].streams[0]));
    }
  } else {
    for (const Group& group : round.groups) issue(round, group);
  }
  for (const Seat& seat : seats_) {
    CUDA_CHECK(cudaSetDevice(seat.device));
    for (cudaStream_t stream : seat.streams) CUDA_CHECK(cudaStreamSynchronize(stream));
    for (ncclComm_t comm : seat.comms) {
      ncclResult_t state = ncclSuccess;
      if (comm != nullptr) NCCL_CHECK(ncclCommGetAsyncError(comm, &state));
      NCCL_CHECK(state);
    }
  }
}

void Player::forget(const Round& round) {
  for (const Recording& recording : recordings_[round.number]) {
    CUDA_CHECK(cudaGraphExecDestroy(recording.exec));
    CUDA_CHECK(cudaGraphDestroy(recording.graph));
  }
  recordings_.erase(round.number);
}

std::vector<std::uint8_t> Player::memory(std::size_t i, std::size_t bytes) {
  const Seat& seat = seats_[i];
  std::vector<std::uint8_t> copy(bytes);
  CUDA_CHECK(cudaSetDevice(seat.device));
  CUDA_CHECK(cudaMemcpyAsync(copy.data(), seat.arena, bytes, cudaMemcpyDeviceToHost, seat.streams[0]));
  CUDA_CHECK(cudaStreamSynchronize(seat.streams[0]));
  return copy;
}

}  // namespace differential
