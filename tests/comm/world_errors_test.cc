// What ncclGetLastError says to whom: the thread's own failure, the communicator's, the process's, in this order.
#include <string>
#include <thread>

#include "base/log.h"
#include "comm/world.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;

std::string lastErrorOf(ncclComm_t comm) {
  return ncclGetLastError(comm);
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(WorldErrors, AThreadReadsItsOwnFailureWhileOthersFail) {
  test::allowLog("AllReduce : ");
  test::withComm(2, [](Member& m) {
    const Ints data(m.gpu, 4, 1);
    for (int i = 0; i < 2000; ++i) {
      // Each has its own mistake.
      const auto type = m.rank == 0 ? static_cast<ncclDataType_t>(77) : ncclInt32;
      const auto op = m.rank == 1 ? static_cast<ncclRedOp_t>(88) : ncclSum;
      ASSERT_EQ(ncclAllReduce(data.at(), data.at(), 4, type, op, m.comm, m.stream()), ncclInvalidArgument);
      const std::string text = lastErrorOf(m.comm);
      ASSERT_TRUE(says(text, m.rank == 0 ? "77" : "88")) << "rank " << m.rank << " reads: " << text;
    }
  });
}

TEST(WorldErrors, TheEndOfAGroupHasTheTextOfTheCallThatFailed) {
  test::allowLog("count argument is NULL");
  test::allowLog("AllReduce : ");
  test::withComm(1, [](Member& m) {
    const Ints data(m.gpu, 4, 1);
    const auto allReduce = [&](ncclDataType_t type) {
      return ncclAllReduce(data.at(), data.at(), 4, type, ncclSum, m.comm, m.stream());
    };
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(allReduce(static_cast<ncclDataType_t>(77)), ncclInvalidArgument);
    EXPECT_EQ(allReduce(ncclInt32), ncclSuccess);
    std::thread([&] { EXPECT_EQ(ncclCommCount(m.comm, nullptr), ncclInvalidArgument); }).join();
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    EXPECT_TRUE(says(lastErrorOf(m.comm), "77")) << lastErrorOf(m.comm);
    m.sync();
  });
}

TEST(WorldErrors, WhoAsksForACommunicatorReadsWhyThatOneFailed) {
  test::allowLog("aborted its communicator");
  test::allowLog("comm argument is NULL");
  test::allowLog("count argument is NULL");
  test::withComm(2, [](Member& m) {
    if (m.rank == 1) {
      EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
      m.comm = nullptr;
      return;
    }
    const Ints data(m.gpu, 4, 1);
    // Connects, or is refused if it comes late.
    ASSERT_EQ(ncclRecv(data.at(), 4, ncclInt32, 1, m.comm, m.stream()), ncclRemoteError);
    // Of another thread, and newer.
    std::thread([] {
      int count = 0;
      EXPECT_EQ(ncclCommCount(nullptr, &count), ncclInvalidArgument);
    }).join();
    EXPECT_TRUE(says(lastErrorOf(m.comm), "aborted its communicator")) << lastErrorOf(m.comm);
    // To a thread without a failure of its own the newest of the process is told.
    std::thread([] { EXPECT_TRUE(says(lastErrorOf(nullptr), "NULL")) << lastErrorOf(nullptr); }).join();
    // This thread's own, and newer.
    EXPECT_EQ(ncclCommCount(m.comm, nullptr), ncclInvalidArgument);
    EXPECT_TRUE(says(lastErrorOf(m.comm), "NULL")) << lastErrorOf(m.comm);
    // Its next call succeeds.
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(m.comm, &state), ncclSuccess);
    EXPECT_TRUE(says(lastErrorOf(m.comm), "aborted its communicator")) << lastErrorOf(m.comm);
    const ncclComm_t freed = std::exchange(m.comm, nullptr);
    EXPECT_EQ(ncclCommAbort(freed), ncclSuccess);
    EXPECT_STREQ(ncclGetLastError(freed), lastErrorText()) << "it is not looked at any more";
  });
}

}  // namespace
}  // namespace tutti::comm
