// A thread that carries out rounds with the library, for the ranks that it drives.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "bench/world.h"
#include "differential/operation.h"

namespace differential {

/// What a rank has beside the world's communicator.
struct Seat {
  int rank = 0;
  int device = 0;
  std::uint8_t* arena = nullptr;
  std::vector<ncclComm_t> comms;  ///< by number; null where the rank is no member
  std::vector<cudaStream_t> streams;
  std::vector<cudaEvent_t> events;  ///< one for each stream
};

/// Belongs to one thread.
class Player {
 public:
  /// `ids`: names of the communicators from number 1 on. Collective over all ranks.
  Player(bench::Worker& worker, const Layout& layout, const ncclUniqueId* ids);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  /// Writes the memory, makes the calls, waits. A captured round is recorded when it is played for the first time, and
  /// replayed from its graphs whenever it comes again.
  void play(const Round& round);
  /// Drops the graphs of a round that will not come again.
  void forget(const Round& round);
  /// The arena's first `bytes` bytes of the i-th of this thread's ranks.
  std::vector<std::uint8_t> memory(std::size_t i, std::size_t bytes);

  const std::vector<Seat>& seats() const { return seats_; }

 private:
  struct Recording {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
  };

  void join(const ncclUniqueId* ids);
  void upload(const Round& round, const Seat& seat);
  void makeOperators(const Round& round, const Group& group);
  void dropOperators(const Group& group);
  ncclResult_t issueOne(const Group& group, std::size_t index, std::size_t seat);
  void issue(const Round& round, const Group& group);
  void record(const Round& round);
  void finish(ncclResult_t result);

  bench::Worker& worker_;
  const Layout& layout_;
  std::vector<Seat> seats_;
  std::vector<ncclRedOp_t> operators_;  ///< of the group in progress: for each operation one for each seat
  std::map<std::size_t, std::vector<Recording>> recordings_;  ///< by number of the round; one for each seat
};

}  // namespace differential
