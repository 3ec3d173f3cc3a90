// The tuner as applications meet it: settings, log lines, simulated groups, through the public API.
#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "comm/world.h"

namespace tutti::comm {
namespace {

using test::countUp;
using test::Ints;
using test::Member;
using test::withComm;

/// Sets variables that are read again at each communicator, for the running test.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Setting(const Setting&) = delete;
  ~Setting() { ::unsetenv(name_); }

 private:
  const char* name_;
};

/// Lets the TUNING and ENV lines through.
class TuningLog {
 public:
  TuningLog() : level_("NCCL_DEBUG", "INFO"), subsys_("NCCL_DEBUG_SUBSYS", "TUNING,ENV") { resetLog(); }
  TuningLog(const TuningLog&) = delete;
  ~TuningLog() {
    ::unsetenv("NCCL_DEBUG");
    ::unsetenv("NCCL_DEBUG_SUBSYS");
    resetLog();
  }

 private:
  Setting level_;
  Setting subsys_;
};

std::size_t linesWith(std::string_view part) {
  const std::vector<std::string> lines = test::capturedLog();
  return static_cast<std::size_t>(std::count_if(
      lines.begin(), lines.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; }));
}

void allReduce(const test::Member& m, std::size_t count) {
  const test::Ints buffer(m.gpu, test::countUp(m.rank, count));
  ASSERT_EQ(ncclAllReduce(buffer.at(), buffer.at(), count, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
  m.sync();
  EXPECT_EQ(buffer.read()[0], m.size * (m.size - 1) / 2);
}

TEST(WorldTuning, RankZeroLogsWhatWasWeighedAndWhatWasChosen) {
  const TuningLog log;
  const Setting algo("NCCL_ALGO", "Ring");
  const Setting proto("NCCL_PROTO", "Simple");
  test::withComm(2, [](test::Member& m) { allReduce(m, 256); });
  EXPECT_EQ(linesWith("Enabled NCCL Func/Proto/Algo Matrix:"), 1u);
  EXPECT_EQ(linesWith("AllReduce: 1024 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..0}"), 1u);
  EXPECT_EQ(linesWith("AllReduce: 1024 Bytes: weighed RING/SIMPLE "), 1u);
  EXPECT_EQ(linesWith("Model for 2 ranks on 1 nodes"), 1u);
}

TEST(WorldTuning, MessagesAreLoggedWithTheirProtocol) {
  const TuningLog log;
  test::withComm(2, [](test::Member& m) {
    const test::Ints in(m.gpu, 10, m.rank), out(m.gpu, 10, -1);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    ASSERT_EQ(ncclSend(in.at(), 10, ncclInt32, 1 - m.rank, m.comm, m.stream()), ncclSuccess);
    ASSERT_EQ(ncclRecv(out.at(), 10, ncclInt32, 1 - m.rank, m.comm, m.stream()), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    m.sync();
    EXPECT_EQ(out.read(), std::vector<int>(10, 1 - m.rank));
  });
  EXPECT_EQ(linesWith("SendRecv: 40 Bytes out, 40 Bytes in -> 2 by LL, 0 by SIMPLE"), 1u);
}

TEST(WorldTuning, UnknownNamesFailInit) {
  const Setting algo("NCCL_ALGO", "Rings");
  test::allowLog("NCCL_ALGO: unknown name \"Rings\"");
  test::allowLog("");  // and what follows from it
  const ncclUniqueId id = test::newId();
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclInvalidUsage);
  });
  EXPECT_NE(test::capturedText().find("NCCL_ALGO: unknown name \"Rings\""), std::string::npos);
}

TEST(WorldTuning, NothingLeftFailsTheOperationAndTheCommunicatorLivesOn) {
  const Setting algo("NCCL_ALGO", "Ring;Broadcast:Tree");
  test::allowLog("No algorithm/protocol available for function Broadcast");
  test::withComm(2, [](test::Member& m) {
    const test::Ints buffer(m.gpu, 10, m.rank);
    EXPECT_EQ(ncclBroadcast(buffer.at(), buffer.at(), 10, ncclInt32, 0, m.comm, m.stream()), ncclInvalidUsage);
    allReduce(m, 100);
  });
  EXPECT_NE(test::capturedText().find("NCCL_ALGO was set to Ring;Broadcast:Tree"), std::string::npos);
}

TEST(WorldTuning, ATreeForAllLeavesTheOthersWithoutAndOnlyTheirCallsFail) {
  const Setting algo("NCCL_ALGO", "tree");
  test::allowLog("No algorithm/protocol available for function AllGather");
  test::withComm(3, [](test::Member& m) {
    allReduce(m, 100);
    const test::Ints sum(m.gpu, 10, 1), gathered(m.gpu, 30, -1), one(m.gpu, 10, m.rank);
    const auto gather = [&] { return ncclAllGather(one.at(), gathered.at(), 10, ncclInt32, m.comm, m.stream()); };
    EXPECT_EQ(gather(), ncclInvalidUsage);
    // What shares a group with it is not carried out either: neither by halves nor by another algorithm.
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(sum.at(), sum.at(), 10, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(gather(), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    m.sync();
    EXPECT_EQ(sum.read(), std::vector<int>(10, 1));
    EXPECT_EQ(gathered.read(), std::vector<int>(30, -1));
    // Messages do not ask, and the communicator lives on.
    ASSERT_EQ(ncclAlltoAll(gathered.at(), sum.at(), 1, ncclInt32, m.comm, m.stream()), ncclSuccess);
    allReduce(m, 100);
  });
  EXPECT_NE(test::capturedText().find("NCCL_ALGO was set to tree"), std::string::npos);
}

TEST(WorldTuning, SimulatedGroupsAreEstimatedAndNotCarriedOut) {
  test::withComm(2, [](test::Member& m) {
    const auto estimate = [&](std::size_t count, int times) {
      const test::Ints buffer(m.gpu, 1 << 20, 7);
      ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      for (int i = 0; i < times; ++i) {
        EXPECT_EQ(ncclAllReduce(buffer.at(), buffer.at(), count, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
      }
      EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclSuccess);
      m.sync();
      EXPECT_EQ(buffer.read(), std::vector<int>(1 << 20, 7)) << "nothing ran";
      return info.estimatedTime;
    };
    EXPECT_EQ(estimate(1, 0), -1.0F) << "an empty group";
    const float small = estimate(1, 1);
    EXPECT_GT(small, 0.0F);
    EXPECT_GT(estimate(1 << 20, 1), small);
    EXPECT_GT(estimate(1 << 20, 4), 2 * estimate(1 << 20, 1));
  });
}

TEST(WorldTuning, ASimulatedGroupMakesAndDestroysItsCommunicators) {
  const ncclUniqueId id = test::newId();
  test::withComm(2, [&](test::Member& m) {
    const test::Ints buffer(m.gpu, 1000, 7);
    test::Member made{m.rank, m.size, nullptr, m.gpu, gpu::Stream::create(m.gpu).value()};
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(buffer.at(), buffer.at(), 1000, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclCommInitRank(&made.comm, m.size, id, m.rank), ncclSuccess);
    ASSERT_EQ(ncclGroupSimulateEnd(&info), ncclSuccess);
    EXPECT_GT(info.estimatedTime, 0.0F);
    m.sync();
    EXPECT_EQ(buffer.read(), std::vector<int>(1000, 7)) << "the operation did not run";
    allReduce(made, 100);
    allReduce(m, 100);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(buffer.at(), buffer.at(), 1000, ncclInt32, ncclSum, made.comm, made.stream()), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(made.comm), ncclSuccess);
    EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclSuccess);
    EXPECT_EQ(buffer.read(), std::vector<int>(1000, 7)) << "the operation did not run";
  });
}

TEST(WorldTuning, TheSlowestCommunicatorOfASimulatedGroupCounts) {
  test::useDevice(0);
  ncclComm_t comms[2] = {};
  ASSERT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSuccess);
  const auto estimate = [&](std::size_t first, std::size_t second) {
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(nullptr, nullptr, first, ncclInt32, ncclSum, comms[0], nullptr), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(nullptr, nullptr, second, ncclInt32, ncclSum, comms[1], nullptr), ncclSuccess);
    EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclSuccess);
    return info.estimatedTime;
  };
  const float both = estimate(1 << 20, 1 << 20);
  EXPECT_GT(both, estimate(1, 1));
  EXPECT_EQ(estimate(1, 1 << 20), both);
  EXPECT_EQ(estimate(1 << 20, 1), both);
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

}  // namespace
}  // namespace tutti::comm
