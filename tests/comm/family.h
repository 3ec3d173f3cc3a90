// What the tests of communicators made from communicators share.
#pragma once

#include <barrier>
#include <vector>

#include "comm/world.h"

namespace tutti::test {

inline ncclConfig_t nonBlocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

/// Ranks of one process free a failed communicator's memory for each other, and freeing waits for whatever runs on its
/// device: nobody may wait there for the one that frees.
class Turns {
 public:
  explicit Turns(int ranks) : all_(ranks) {}
  void next() { all_.arrive_and_wait(); }

 private:
  std::barrier<> all_;
};

/// The sum of `value` over all ranks of `comm`, by a collective.
inline int sumOf(const Member& m, ncclComm_t comm, int value) {
  const Ints data(m.gpu, 1000, value);
  EXPECT_EQ(ncclAllReduce(data.at(), data.at(), 1000, ncclInt32, ncclSum, comm, m.stream()), ncclSuccess);
  m.sync();
  const std::vector<int> all = data.read();
  EXPECT_EQ(all, std::vector<int>(1000, all.front()));
  return all.front();
}

/// What each rank of `comm` gives, in order of its ranks.
inline std::vector<int> gathered(const Member& m, ncclComm_t comm, int value) {
  int count = 0;
  EXPECT_EQ(ncclCommCount(comm, &count), ncclSuccess);
  const Ints in(m.gpu, 1, value);
  const Ints out(m.gpu, static_cast<std::size_t>(count), -1);
  EXPECT_EQ(ncclAllGather(in.at(), out.at(), 1, ncclInt32, comm, m.stream()), ncclSuccess);
  m.sync();
  return out.read();
}

/// Needs a peer of `comm` that is gone, and learns it so.
inline ncclResult_t errorOfUse(const Member& m, ncclComm_t comm) {
  const Ints data(m.gpu, 1000, 1);
  const ncclResult_t called = ncclAllReduce(data.at(), data.at(), 1000, ncclInt32, ncclSum, comm, m.stream());
  const ncclResult_t state = called == ncclSuccess ? awaitError(comm) : called;
  m.sync();
  return state;
}

inline void destroy(ncclComm_t comm) {
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

}  // namespace tutti::test
