// Operations that do not end are reported after a second, and who holds them up is named.
#include <cstdlib>

#include "comm/stalled.h"
#include "comm/world.h"

namespace tutti::comm {
namespace {

using test::askOwnProcess;
using test::awaitLog;
using test::countOf;
using test::Ints;
using test::Member;
using test::stallAfter;

constexpr std::size_t kCount = 1 << 16;

ncclResult_t allReduce(const test::Member& m, const test::Ints& data) {
  return ncclAllReduce(data.at(), data.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream());
}

TEST(WorldStalls, NameTheRankThatDoesNotCall) {
  stallAfter("1");
  for (const int rank : {0, 1, 3}) test::expectLog("Stall: rank " + std::to_string(rank) + " of 4");
  test::withComm(4, [](test::Member& m) {
    const test::Ints data(m.gpu, kCount, m.rank);
    ASSERT_EQ(allReduce(m, data), ncclSuccess);
    m.sync();
    if (m.rank == 2) {
      EXPECT_TRUE(awaitLog("Stall: rank ", 3));
      std::this_thread::sleep_for(milliseconds(1500));  // each says it once
    }
    ASSERT_EQ(allReduce(m, data), ncclSuccess);
    m.sync();
  });
  const std::string log = test::capturedText();
  EXPECT_EQ(countOf(log, "Stall: "), 3U) << log;
  EXPECT_EQ(countOf(log, "has launched 1 collective operation, this one is the 2nd: it has not called AllReduce yet"),
            3U)
      << log;
  EXPECT_NE(log.find("to fill slot"), std::string::npos) << log;
  EXPECT_NE(log.find("operation AllReduce (kernel tutti_AllReduce_"), std::string::npos) << log;
  EXPECT_EQ(countOf(log, "rank 1 (host "), countOf(log, "from rank 1 (host ") + countOf(log, "to rank 1 (host "))
      << log;
}

TEST(WorldStalls, NameTheOtherHalfOfAMessage) {
  stallAfter("1");
  test::expectLog("Stall: rank 0 of 2");
  test::withComm(2, [](test::Member& m) {
    const test::Ints data(m.gpu, kCount, m.rank);
    const auto exchange = [&] {
      return m.rank == 0 ? ncclRecv(data.at(), kCount, ncclInt32, 1, m.comm, m.stream())
                         : ncclSend(data.at(), kCount, ncclInt32, 0, m.comm, m.stream());
    };
    ASSERT_EQ(exchange(), ncclSuccess);
    m.sync();
    if (m.rank == 1) {
      EXPECT_TRUE(awaitLog("Stall: rank 0", 1));
    }
    ASSERT_EQ(exchange(), ncclSuccess);
    m.sync();
  });
  const std::string log = test::capturedText();
  EXPECT_NE(log.find("has nothing under way after 1 operation: it has not called the matching Send or Recv"),
            std::string::npos)
      << log;
}

TEST(WorldStalls, ACallThatWaitsToBeConnectedIsReportedToo) {
  stallAfter("1");
  test::expectLog("Stall: rank 0 of 2");
  test::withComm(2, [](test::Member& m) {
    const test::Ints data(m.gpu, kCount, m.rank);
    if (m.rank == 1) {
      EXPECT_TRUE(awaitLog("Stall: rank 0", 1));
    }
    ASSERT_EQ(m.rank == 0 ? ncclRecv(data.at(), kCount, ncclInt32, 1, m.comm, m.stream())
                          : ncclSend(data.at(), kCount, ncclInt32, 0, m.comm, m.stream()),
              ncclSuccess);
    m.sync();
  });
  const std::string log = test::capturedText();
  EXPECT_NE(log.find("a call of SendRecv has waited for"), std::string::npos) << log;
  EXPECT_NE(log.find("rank 1 (host "), std::string::npos) << log;
  EXPECT_NE(log.find("has nothing under way after 0 operations: it has not called the matching Send or Recv"),
            std::string::npos)
      << log;
  EXPECT_NE(log.find(") to post its send"), std::string::npos) << log;
}

TEST(WorldStalls, ASendWithoutItsReceiveNamesWhoIsToPostIt) {
  stallAfter("1");
  test::expectLog("Stall: rank 0 of 3");
  test::withComm(3, [](test::Member& m) {
    const test::Ints data(m.gpu, kCount, m.rank);
    if (m.rank == 1) return;
    if (m.rank == 2) {
      EXPECT_TRUE(awaitLog("Stall: rank 0", 1));
    }
    ASSERT_EQ(m.rank == 2 ? ncclRecv(data.at(), kCount, ncclInt32, 0, m.comm, m.stream())
                          : ncclSend(data.at(), kCount, ncclInt32, 2, m.comm, m.stream()),
              ncclSuccess);
    m.sync();
  });
  const std::string log = test::capturedText();
  const std::size_t line = log.find("waits for rank 2 (host ");
  ASSERT_NE(line, std::string::npos) << log;
  EXPECT_NE(log.find(") to post its receive", line), std::string::npos) << log;
}

TEST(WorldStalls, WhatIsOffOrMovesIsNotReported) {
  stallAfter("0");
  test::withComm(2, [](test::Member& m) {
    const test::Ints data(m.gpu, kCount, m.rank);
    if (m.rank == 1) std::this_thread::sleep_for(milliseconds(2500));
    ASSERT_EQ(allReduce(m, data), ncclSuccess);
    m.sync();
  });
  stallAfter("1");
  test::withComm(
      2,
      [](test::Member& m) {
        const test::Ints data(m.gpu, kCount, m.rank);
        // The kernels of rank 1 are queued for far longer than the limit, and move whenever rank 0 calls.
        for (int i = 0; i < 350; ++i) {
          ASSERT_EQ(allReduce(m, data), ncclSuccess);
          if (m.rank == 0) std::this_thread::sleep_for(milliseconds(10));
        }
        m.sync();
      },
      2);
  EXPECT_EQ(countOf(test::capturedText(), "Stall: "), 0U) << test::capturedText();
}

TEST(WorldStalls, SeveralLaunchesOfWhichAnEarlierOneMovesAreNotReported) {
  stallAfter("1");
  constexpr int kSteps = 320;
  test::withComm(3, [](test::Member& m) {
    const test::Ints data(m.gpu, kCount, m.rank);
    const auto message = [&](int from, int to) {
      if (m.rank == from) {
        ASSERT_EQ(ncclSend(data.at(), kCount, ncclInt32, to, m.comm, m.stream()), ncclSuccess);
      }
      if (m.rank == to) {
        ASSERT_EQ(ncclRecv(data.at(), kCount, ncclInt32, from, m.comm, m.stream()), ncclSuccess);
      }
    };
    message(0, 1);
    message(0, 2);
    m.sync();
    // Of rank 0 only the last launch is known, which waits for the others; rank 2 waits for rank 0.
    for (int i = 0; i < kSteps; ++i) {
      message(0, 1);
      if (m.rank == 1) std::this_thread::sleep_for(milliseconds(10));
    }
    message(0, 2);
    m.sync();
  });
  EXPECT_EQ(countOf(test::capturedText(), "Stall: "), 0U) << test::capturedText();
}

TEST(WorldStalls, ARankThatLeftInPeaceIsNotBlamed) {
  stallAfter("1");
  test::expectLog("Stall: rank 0 of 3");
  test::withComm(3, [](test::Member& m) {
    const test::Ints data(m.gpu, kCount, m.rank);
    const auto exchange = [&] {
      if (m.rank == 0) {
        ASSERT_EQ(ncclRecv(data.at(), kCount, ncclInt32, 1, m.comm, m.stream()), ncclSuccess);
      }
      if (m.rank == 1) {
        ASSERT_EQ(ncclSend(data.at(), kCount, ncclInt32, 0, m.comm, m.stream()), ncclSuccess);
      }
      m.sync();
    };
    if (m.rank == 2) return;  // destroys its communicator
    exchange();
    if (m.rank == 1) {
      EXPECT_TRUE(awaitLog("Stall: rank 0", 1));
    }
    exchange();
  });
  const std::string log = test::capturedText();
  EXPECT_NE(log.find("rank 1 (host "), std::string::npos) << log;
  EXPECT_NE(log.find("has nothing under way after 1 operation"), std::string::npos) << log;
  EXPECT_EQ(log.find("does not answer"), std::string::npos) << log;
}

TEST(WorldStalls, ArePrintedForWhoeverAsks) {
  stallAfter("0");
  EXPECT_EQ(askOwnProcess(), "") << "nobody listens without communicators";
  test::withComm(3, [](test::Member& m) {
    const test::Ints data(m.gpu, kCount, m.rank);
    if (m.rank == 0) {
      std::this_thread::sleep_for(milliseconds(300));
      const std::string text = askOwnProcess();
      EXPECT_EQ(countOf(text, "communicator 0x"), 3U) << text;
      EXPECT_EQ(countOf(text, "nothing is under way, 0 operations were launched"), 1U) << text;
      EXPECT_EQ(countOf(text, "it has not called AllReduce yet"), 2U) << text;
      EXPECT_NE(text.find("to fill slot 0"), std::string::npos) << text;
    }
    ASSERT_EQ(allReduce(m, data), ncclSuccess);
    m.sync();
  });
}

}  // namespace
}  // namespace tutti::comm
