// A peer that is gone is an error only for who needs it.
#include <atomic>
#include <string>
#include <thread>

#include "comm/graph.h"
#include "comm/state/communicator.h"
#include "comm/state/lost_peer.h"
#include "comm/world.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;

constexpr std::size_t kCount = 1000;

ncclResult_t allReduce(const Member& m, const Ints& data) {
  return ncclAllReduce(data.at(), data.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream());
}

ncclResult_t stateOf(const Member& m) {
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(m.comm, &state), ncclSuccess);
  return state;
}

void awaitWord(const Member& m) {
  const Deadline deadline = Deadline::in(std::chrono::seconds(20));
  while (!m.comm->lostPeer->heard() && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(m.comm->lostPeer->heard());
  std::this_thread::sleep_for(milliseconds(600));  // two looks of the watch
}

/// All ranks of the test are here: an operation of which one waits for the end may not be over on the others.
class Meeting {
 public:
  explicit Meeting(int ranks) : missing_(ranks) {}
  void come() {
    --missing_;
    while (missing_ > 0) std::this_thread::yield();
  }

 private:
  std::atomic<int> missing_;
};

/// All ranks have carried out an operation, and are idle.
void operateTogether(Member& m, const Ints& data, Meeting& done) {
  EXPECT_EQ(allReduce(m, data), ncclSuccess);
  m.sync();
  done.come();
}

void abortNow(Member& m) {
  EXPECT_EQ(ncclCommAbort(std::exchange(m.comm, nullptr)), ncclSuccess);
}

TEST(WorldPeers, AnIdleRankIsNotDisturbedByAnAbortUntilItCalls) {
  test::allowLog("aborted its communicator");
  Meeting done(3);
  test::withComm(3, [&](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    operateTogether(m, data, done);
    if (m.rank == 0) return abortNow(m);
    awaitWord(m);
    EXPECT_EQ(stateOf(m), ncclSuccess);
    if (m.rank == 1) {
      EXPECT_EQ(ncclCommFinalize(m.comm), ncclSuccess);
      return;  // and is destroyed, with success
    }
    EXPECT_EQ(allReduce(m, data), ncclRemoteError);
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("rank 0 (host "), std::string::npos);
    EXPECT_EQ(stateOf(m), ncclRemoteError);
    EXPECT_NE(std::string(ncclGetLastError(m.comm)).find("rank 0 (host "), std::string::npos);
    EXPECT_EQ(allReduce(m, data), ncclRemoteError);
    abortNow(m);
  });
}

TEST(WorldPeers, NobodySpeaksOfAnAbortThatConcernsNobody) {
  Meeting done(2);
  test::withComm(2, [&](Member& m) {
    done.come();
    if (m.rank == 0) return abortNow(m);
    awaitWord(m);
  });
}

TEST(WorldPeers, ACallThatConnectsFailsWhenItsPeerIsLost) {
  test::allowLog("aborted its communicator");
  test::allowLog("rank 0");
  test::withComm(2, [](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    if (m.rank == 0) {
      std::this_thread::sleep_for(milliseconds(50));
      return abortNow(m);
    }
    // Messages are connected by their first call.
    EXPECT_EQ(ncclRecv(data.at(), kCount, ncclInt32, 0, m.comm, m.stream()), ncclRemoteError);
    EXPECT_EQ(stateOf(m), ncclRemoteError);
    abortNow(m);
  });
}

/// Which the watch has seen to run, and has not seen to end.
TEST(WorldPeers, AnAbortBehindTheLastKernelsDisturbsNobody) {
  test::allowLog("aborted its communicator");
  Meeting done(2);
  test::withComm(2, [&](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    if (m.rank == 0) std::this_thread::sleep_for(milliseconds(700));  // some looks of the watch
    operateTogether(m, data, done);
    if (m.rank == 0) return abortNow(m);
    awaitWord(m);
    EXPECT_EQ(stateOf(m), ncclSuccess);
    EXPECT_EQ(ncclCommFinalize(m.comm), ncclSuccess);
  });
}

TEST(WorldPeers, AReplayFailsThatNeedsALostPeer) {
  test::allowLog("aborted its communicator");
  Meeting done(2);
  test::withComm(2, [&](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    ASSERT_EQ(allReduce(m, data), ncclSuccess);
    const auto graph = test::Recording::of(m.stream(), [&] { EXPECT_EQ(allReduce(m, data), ncclSuccess); });
    graph->launch(m.stream());
    m.sync();
    done.come();
    if (m.rank == 0) return abortNow(m);
    awaitWord(m);
    EXPECT_EQ(stateOf(m), ncclSuccess);
    graph->launch(m.stream());
    EXPECT_EQ(test::awaitError(m.comm), ncclRemoteError);
    abortNow(m);
    m.sync();
  });
}

TEST(WorldPeers, TheEndFailsThatWaitsForALostPeer) {
  test::allowLog("aborted its communicator");
  test::withComm(2, [](Member& m) {
    const Ints data(m.gpu, kCount, 1);
    const auto exchange = [&] {
      return m.rank == 0 ? ncclRecv(data.at(), 4, ncclInt32, 1, m.comm, m.stream())
                         : ncclSend(data.at(), 4, ncclInt32, 0, m.comm, m.stream());
    };
    ASSERT_EQ(exchange(), ncclSuccess);
    m.sync();
    if (m.rank == 0) {
      std::this_thread::sleep_for(milliseconds(300));
      return abortNow(m);
    }
    // Nobody takes it; where it lies in a slot, it is sent as far as its stream is concerned.
    ASSERT_EQ(exchange(), ncclSuccess);
    EXPECT_EQ(ncclCommFinalize(m.comm), ncclRemoteError);
    abortNow(m);
    m.sync();
  });
}

}  // namespace
}  // namespace tutti::comm
