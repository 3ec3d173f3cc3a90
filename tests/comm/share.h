// What the tests of families that share connections have in common.
#pragma once

#include <array>
#include <cstdlib>
#include <functional>
#include <vector>

#include "comm/family.h"

namespace tutti::test {

inline constexpr std::size_t kCount = 3000;

inline ncclConfig_t sharing() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = 1;
  config.shrinkShare = 1;
  return config;
}

/// As withComm(), with a configuration.
inline void withFamily(int ranks, const std::function<void(Member&)>& body, ncclConfig_t config = sharing()) {
  // A plugin cannot know that the peer has left in peace.
  if (std::getenv("NCCL_NET_PLUGIN") != nullptr) allowLog("multi_net: receiving failed");
  const ncclUniqueId id = newId();
  runRanks(ranks, [&](int rank) {
    useDevice(rank);
    Member member{rank, ranks, nullptr, device(rank), gpu::Stream::create(device(rank)).value()};
    ncclConfig_t own = config;
    ncclCommInitRankConfig(&member.comm, ranks, id, rank, &own);
    ASSERT_EQ(settle(member.comm), ncclSuccess);
    body(member);
    if (member.comm != nullptr) destroy(member.comm);
  });
}

inline bool overNetwork() {
  return std::getenv("NCCL_SHM_DISABLE") != nullptr;
}

inline int rankIn(ncclComm_t comm) {
  int rank = -1;
  EXPECT_EQ(ncclCommUserRank(comm, &rank), ncclSuccess);
  return rank;
}

inline int sizeOf(ncclComm_t comm) {
  int size = 0;
  EXPECT_EQ(ncclCommCount(comm, &size), ncclSuccess);
  return size;
}

inline ncclComm_t splitOf(ncclComm_t parent, int color = 0, int key = 0) {
  ncclComm_t child = nullptr;
  EXPECT_EQ(ncclCommSplit(parent, color, key, &child, nullptr), ncclSuccess);
  return child;
}

inline std::uint64_t memoryOf(ncclComm_t comm) {
  std::uint64_t bytes = 0;
  EXPECT_EQ(ncclCommMemStats(comm, ncclStatGpuMemTotal, &bytes), ncclSuccess);
  return bytes;
}

inline std::vector<int> inputOf(ncclComm_t comm, int factor) {
  return countUp(factor * (rankIn(comm) + 1), kCount);
}

/// Buffers for one round of everything, so that rounds may be under way at the same time.
struct Round {
  Round(const Member& m, ncclComm_t on, int number) : comm(on), factor(number), in(m.gpu, inputOf(on, number)) {
    for (int i = 0; i < 7; ++i) out.emplace_back(m.gpu, kCount, -1);
  }
  std::size_t block() const { return kCount / static_cast<std::size_t>(size); }

  void call(CUstream stream) const {
    ASSERT_EQ(ncclAllReduce(in.at(), out[0].at(), kCount, ncclInt32, ncclSum, comm, stream), ncclSuccess);
    ASSERT_EQ(ncclAllGather(in.at(), out[1].at(), block(), ncclInt32, comm, stream), ncclSuccess);
    ASSERT_EQ(ncclReduceScatter(in.at(), out[2].at(), block(), ncclInt32, ncclSum, comm, stream), ncclSuccess);
    ASSERT_EQ(ncclBroadcast(in.at(), out[3].at(), kCount, ncclInt32, size - 1, comm, stream), ncclSuccess);
    ASSERT_EQ(ncclReduce(in.at(), out[4].at(), kCount, ncclInt32, ncclSum, 0, comm, stream), ncclSuccess);
    ASSERT_EQ(ncclAlltoAll(in.at(), out[5].at(), block(), ncclInt32, comm, stream), ncclSuccess);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    ASSERT_EQ(ncclSend(in.at(), kCount, ncclInt32, (rank + 1) % size, comm, stream), ncclSuccess);
    ASSERT_EQ(ncclRecv(out[6].at(), kCount, ncclInt32, (rank + size - 1) % size, comm, stream), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  }

  /// What rank `r` put in at `i`.
  int given(int r, std::size_t i) const { return factor * (r + 1) + static_cast<int>(i); }
  int sum(std::size_t i) const { return factor * size * (size + 1) / 2 + size * static_cast<int>(i); }

  void check() const {
    const std::size_t part = block();
    const auto parts = part * static_cast<std::size_t>(size);
    std::array<std::vector<int>, 7> shall;
    shall.fill(std::vector<int>(kCount, -1));
    const std::size_t own = static_cast<std::size_t>(rank) * part;
    for (std::size_t i = 0; i < kCount; ++i) {
      shall[0][i] = sum(i);
      if (i < parts) shall[1][i] = given(static_cast<int>(i / part), i % part);
      if (i < part) shall[2][i] = sum(own + i);
      shall[3][i] = given(size - 1, i);
      if (rank == 0) shall[4][i] = sum(i);
      if (i < parts) shall[5][i] = given(static_cast<int>(i / part), own + i % part);
      shall[6][i] = given((rank + size - 1) % size, i);
    }
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i].read(), shall[i]) << "operation " << i;
  }

  ncclComm_t comm;
  int size = sizeOf(comm);
  int rank = rankIn(comm);
  int factor;
  Ints in;
  std::vector<Ints> out;
};

inline void checkAll(const Member& m, ncclComm_t comm, int factor) {
  const Round round(m, comm, factor);
  round.call(m.stream());
  m.sync();
  round.check();
}

}  // namespace tutti::test
