// Operations that open their connections in other company, or in other calls, than their peers do.
#include <atomic>
#include <bit>
#include <cstdlib>
#include <thread>

#include "comm/world.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;
using test::withComm;

constexpr std::size_t kCount = 3000;

int bitsOf(float value) {
  return std::bit_cast<int>(value);
}

void send(const test::Member& m, const test::Ints& data, int peer) {
  EXPECT_EQ(ncclSend(data.at(), kCount, ncclInt32, peer, m.comm, m.stream()), ncclSuccess);
}

void recv(const test::Member& m, const test::Ints& data, int peer) {
  EXPECT_EQ(ncclRecv(data.at(), kCount, ncclInt32, peer, m.comm, m.stream()), ncclSuccess);
}

TEST(WorldConnect, AnExchangeMeetsAPeerThatSendsAndReceivesInTwoCalls) {
  test::withComm(2, [](test::Member& m) {
    const test::Ints in(m.gpu, kCount, m.rank + 5);
    const test::Ints out(m.gpu, kCount, -1);
    if (m.rank == 0) {
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    }
    send(m, in, 1 - m.rank);
    recv(m, out, 1 - m.rank);
    if (m.rank == 0) {
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    }
    m.sync();
    EXPECT_EQ(out.read(), std::vector<int>(kCount, 1 - m.rank + 5));
  });
}

/// Threads of one process: rank 0's holds its call in a group until the others' calls have returned.
TEST(WorldConnect, NoCallOfACollectiveWaitsForOthersWhereAllIsConnectedAtInit) {
  ::setenv("NCCL_RUNTIME_CONNECT", "0", 1);
  for (const char* algorithm : {"Tree", "OneShot", "Direct", "Ring"}) {
    ::setenv("NCCL_ALGO", algorithm, 1);
    std::atomic<int> returned{0};
    test::withComm(4, [&](test::Member& m) {
      const test::Ints data(m.gpu, kCount, m.rank);
      const auto call = [&] {
        return ncclAllReduce(data.at(), data.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream());
      };
      if (m.rank == 0) {
        ASSERT_EQ(ncclGroupStart(), ncclSuccess);
        EXPECT_EQ(call(), ncclSuccess);
        const Deadline deadline = Deadline::in(std::chrono::seconds(20));
        while (returned < 3 && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
        EXPECT_EQ(returned, 3) << algorithm;
        EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
      } else {
        EXPECT_EQ(call(), ncclSuccess);
        ++returned;
      }
      m.sync();
      EXPECT_EQ(data.read(), std::vector<int>(kCount, 6)) << algorithm;
    });
  }
  for (const char* name : {"NCCL_RUNTIME_CONNECT", "NCCL_ALGO"}) ::unsetenv(name);
}

TEST(WorldConnect, OneRankGroupsWhatTheOthersCallOneByOne) {
  test::withComm(3, [](test::Member& m) {
    const test::Ints in(m.gpu, kCount, m.rank);
    const test::Ints fromFirst(m.gpu, kCount, -1);
    const test::Ints fromSecond(m.gpu, kCount, -1);
    if (m.rank == 0) {
      send(m, in, 1);
      send(m, in, 2);
    } else if (m.rank == 1) {
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      recv(m, fromFirst, 0);
      send(m, in, 2);
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    } else {
      recv(m, fromFirst, 0);
      recv(m, fromSecond, 1);
    }
    m.sync();
    EXPECT_EQ(fromFirst.read(), std::vector<int>(kCount, m.rank == 0 ? -1 : 0));
    EXPECT_EQ(fromSecond.read(), std::vector<int>(kCount, m.rank == 2 ? 1 : -1));
  });
}

TEST(WorldConnect, ACollectiveAndAMessageInOneGroupMeetTwoCalls) {
  test::withComm(2, [](test::Member& m) {
    const test::Ints in(m.gpu, kCount, bitsOf(m.rank == 0 ? 1.0F : 2.0F));
    const test::Ints sum(m.gpu, kCount, -1);
    const test::Ints out(m.gpu, kCount, -1);
    if (m.rank == 0) {
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    }
    EXPECT_EQ(ncclAllReduce(in.at(), sum.at(), kCount, ncclFloat32, ncclSum, m.comm, m.stream()), ncclSuccess);
    if (m.rank == 0) {
      send(m, in, 1);
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    } else {
      recv(m, out, 0);
    }
    m.sync();
    EXPECT_EQ(sum.read(), std::vector<int>(kCount, bitsOf(3.0F)));
    EXPECT_EQ(out.read(), std::vector<int>(kCount, m.rank == 0 ? -1 : bitsOf(1.0F)));
  });
}

}  // namespace
}  // namespace tutti::comm
