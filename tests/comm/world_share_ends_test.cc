// Communicators that share connections with their parent (splitShare, shrinkShare): they end in any order, and nothing
// is lost. Run once for each transport (meson.build).
#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "comm/graph.h"
#include "comm/share.h"

namespace tutti::comm {
namespace {

using test::checkAll;
using test::destroy;
using test::Ints;
using test::kCount;
using test::Member;
using test::memoryOf;
using test::Recording;
using test::Round;
using test::splitOf;
using test::Turns;
using test::withFamily;

TEST(WorldShareEnds, AGraphOutlivesItsCommunicatorAndItsRelatives) {
  Turns turns(3);
  withFamily(3, [&](Member& m) {
    const ncclComm_t child = splitOf(m.comm);
    const Round round(m, child, 3);
    checkAll(m, child, 1);
    {
      const auto graph = Recording::of(m.stream(), [&] { round.call(m.stream()); });
      turns.next();
      destroy(child);
      destroy(m.comm);
      m.comm = nullptr;
      turns.next();
      graph->launch(m.stream());
      m.sync();
      round.check();
      turns.next();
    }
  });
}

TEST(WorldShareEnds, MembersEndInAnyOrder) {
  std::array order{0, 1, 2};
  do {
    withFamily(3, [&](Member& m) {
      const ncclComm_t child = splitOf(m.comm, 0, -m.rank);
      const std::array comms{m.comm, child, splitOf(child)};
      m.comm = nullptr;
      for (ncclComm_t comm : comms) checkAll(m, comm, 1);
      for (std::size_t i = 0; i < 3; ++i) {
        destroy(comms[static_cast<std::size_t>(order[i])]);
        for (std::size_t left = i + 1; left < 3; ++left) {
          checkAll(m, comms[static_cast<std::size_t>(order[left])], static_cast<int>(i + left));
        }
      }
    });
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(WorldShareEnds, ChildrenComeAndGoWithoutATrace) {
  withFamily(3, [](Member& m) {
    const auto cycle = [&] {
      const ncclComm_t child = splitOf(m.comm);
      checkAll(m, child, 2);
      destroy(child);
    };
    cycle();
    const std::uint64_t before = memoryOf(m.comm);
    for (int i = 0; i < 10; ++i) cycle();
    EXPECT_EQ(memoryOf(m.comm), before);
  });
}

TEST(WorldShareEnds, TheEndOfOneDoesNotWaitForMessagesOfAnother) {
  Turns turns(2);
  withFamily(2, [&](Member& m) {
    const ncclComm_t child = splitOf(m.comm);
    for (ncclComm_t comm : {m.comm, child}) checkAll(m, comm, 1);
    const Ints data(m.gpu, 16, m.rank == 0 ? 5 : 0);
    if (m.rank == 0) {
      ASSERT_EQ(ncclSend(data.at(), 16, ncclInt32, 1, m.comm, m.stream()), ncclSuccess);
      m.sync();
    }
    if (m.rank == 0) {
      const auto start = SteadyClock::now();
      destroy(child);
      EXPECT_LT(secondsSince(start), 5.0);
    }
    turns.next();
    if (m.rank == 0) return;
    ASSERT_EQ(ncclRecv(data.at(), 16, ncclInt32, 0, m.comm, m.stream()), ncclSuccess);
    m.sync();
    EXPECT_EQ(data.read(), std::vector<int>(16, 5));
    destroy(child);
  });
}

TEST(WorldShareEnds, WhatAMemberHasSentArrivesAfterItsEnd) {
  constexpr int kMessages = 3;  // as many as slots take for sure …
  constexpr int kShort = 16;    // … and so short that none is read in place
  Turns turns(2);
  withFamily(2, [&](Member& m) {
    checkAll(m, m.comm, 1);
    const ncclComm_t child = splitOf(m.comm);
    std::vector<Ints> data;
    for (int i = 0; i < kMessages; ++i) data.emplace_back(m.gpu, kShort, m.rank == 0 ? i : -1);
    const auto call = [&](auto function, int peer) {
      for (const Ints& one : data) {
        ASSERT_EQ(function(one.at(), kShort, ncclInt32, peer, m.comm, m.stream()), ncclSuccess);
      }
    };
    if (m.rank == 0) {
      call(ncclSend, 1);
      m.sync();
      destroy(m.comm);
      m.comm = nullptr;
    }
    turns.next();
    if (m.rank == 1) {
      call(ncclRecv, 0);
      m.sync();
      for (int i = 0; i < kMessages; ++i) {
        EXPECT_EQ(data[static_cast<std::size_t>(i)].read(), std::vector<int>(kShort, i));
      }
    }
    turns.next();
    checkAll(m, child, 2);
    destroy(child);
  });
}

/// Of a communicator that was aborted goodbyes are not heard any more.
TEST(WorldShareEnds, PeersThatLeaveInPeaceDoSoAlsoWhereTheyHaveAbortedARelative) {
  constexpr auto kLongerThanAFarewellMayTake = milliseconds(2500);
  Turns turns(3);
  withFamily(3, [&](Member& m) {
    checkAll(m, m.comm, 1);
    const ncclComm_t aborted = splitOf(m.comm);
    const ncclComm_t first = splitOf(m.comm);
    const ncclComm_t second = splitOf(m.comm);
    checkAll(m, first, 1);
    turns.next();
    if (m.rank != 0) {
      EXPECT_EQ(ncclCommAbort(aborted), ncclSuccess);
      for (ncclComm_t comm : {first, second, m.comm}) destroy(comm);
      m.comm = nullptr;
      return;
    }
    std::this_thread::sleep_for(milliseconds(500));
    destroy(first);
    std::this_thread::sleep_for(kLongerThanAFarewellMayTake);
    destroy(second);
    std::this_thread::sleep_for(milliseconds(100));
    ncclResult_t state = ncclInternalError;
    EXPECT_EQ(ncclCommGetAsyncError(m.comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess) << ncclGetLastError(m.comm);
    EXPECT_EQ(ncclCommAbort(aborted), ncclSuccess);
  });
}

}  // namespace
}  // namespace tutti::comm
