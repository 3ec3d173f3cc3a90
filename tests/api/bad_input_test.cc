// Bad arguments against the built library: each row is a call, the code it must return and words its text must have.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nccl_device.h"

namespace {

struct Row {
  std::string name;
  std::function<ncclResult_t(ncclComm_t)> call;
  ncclResult_t code = ncclSuccess;
  std::string text;  ///< part of ncclGetLastError(), "" where the call succeeds
};
std::ostream& operator<<(std::ostream& out, const Row& row) {
  return out << row.name;
}

std::string rowName(const testing::TestParamInfo<Row>& info) {
  return info.param.name;
}

void check(const Row& row, ncclComm_t comm) {
  EXPECT_EQ(row.call(comm), row.code) << ncclGetLastError(nullptr);
  if (row.text.empty()) return;
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find(row.text), std::string::npos)
      << "text is: " << ncclGetLastError(nullptr);
}

constexpr auto kBadType = static_cast<ncclDataType_t>(12);
constexpr auto kNegativeType = static_cast<ncclDataType_t>(-1);
constexpr auto kUnknownOp = static_cast<ncclRedOp_t>(1234);
constexpr auto kNegativeOp = static_cast<ncclRedOp_t>(-1);
float* const kData = nullptr;

ncclResult_t initOne(int nRanks, int rank) {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  if (const ncclResult_t made = ncclGetUniqueId(&id); made != ncclSuccess) return made;
  return ncclCommInitRank(&comm, nRanks, id, rank);
}

ncclResult_t initDevices(int first, int second) {
  ncclComm_t comms[2] = {};
  const int devices[2] = {first, second};
  return ncclCommInitAll(comms, 2, devices);
}

/// Memory that is no communicator.
ncclComm_t someMemory() {
  alignas(64) static std::uint64_t words[8192];
  return reinterpret_cast<ncclComm_t>(words);
}

template <class Field>
ncclResult_t initWithConfig(Field ncclConfig_t::*field, Field value) {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.*field = value;
  if (const ncclResult_t made = ncclGetUniqueId(&id); made != ncclSuccess) return made;
  return ncclCommInitRankConfig(&comm, 1, id, 0, &config);
}

struct Claim {
  int nRanks;
  int rank;
};

/// Two threads with one id that do not agree on who they are. Returns the one result that both must get.
ncclResult_t initTwo(Claim one, Claim other) {
  ncclUniqueId id;
  if (const ncclResult_t made = ncclGetUniqueId(&id); made != ncclSuccess) return made;
  ncclResult_t results[2] = {};
  const auto join = [&id](Claim me, ncclResult_t* result) {
    ncclComm_t comm = nullptr;
    *result = ncclCommInitRank(&comm, me.nRanks, id, me.rank);
  };
  std::thread second(join, other, &results[1]);
  join(one, &results[0]);
  second.join();
  EXPECT_EQ(results[0], results[1]);
  return results[0];
}

std::vector<Row> rowsWithoutCommunicator() {
  static int number;
  static ncclResult_t result;
  static ncclParamHandle_t handle;
  static const char* text;
  static ncclSimInfo_t unknownInfo{};
  return {
      {"VersionNull", [](ncclComm_t) { return ncclGetVersion(nullptr); }, ncclInvalidArgument, "GetVersion"},
      {"UniqueIdNull", [](ncclComm_t) { return ncclGetUniqueId(nullptr); }, ncclInvalidArgument, "GetUniqueId"},
      {"CountOfNull", [](ncclComm_t) { return ncclCommCount(nullptr, &number); }, ncclInvalidArgument,
       "CommCount : comm argument is NULL"},
      {"RankOfNull", [](ncclComm_t) { return ncclCommUserRank(nullptr, &number); }, ncclInvalidArgument,
       "CommUserRank : comm argument is NULL"},
      {"DeviceOfNull", [](ncclComm_t) { return ncclCommCuDevice(nullptr, &number); }, ncclInvalidArgument,
       "CommCuDevice : comm argument is NULL"},
      {"AsyncErrorOfNull", [](ncclComm_t) { return ncclCommGetAsyncError(nullptr, &result); }, ncclInvalidArgument,
       "ncclGetAsyncError : comm argument is NULL"},
      {"AllReduceNull", [](ncclComm_t) { return ncclAllReduce(0, kData, 1, ncclFloat, ncclSum, nullptr, nullptr); },
       ncclInvalidArgument, "AllReduce : comm argument is NULL"},
      {"SendNull", [](ncclComm_t) { return ncclSend(0, 1, ncclFloat, 0, nullptr, nullptr); }, ncclInvalidArgument,
       "Send : comm argument is NULL"},
      {"SplitNull", [](ncclComm_t) { return ncclCommSplit(nullptr, 0, 0, nullptr, nullptr); }, ncclInvalidArgument,
       "CommSplit : comm argument is NULL"},
      {"CountOfNoCommunicator", [](ncclComm_t) { return ncclCommCount(someMemory(), &number); }, ncclInvalidArgument,
       "Error: corrupted comm object detected"},
      {"AllReduceOnNoCommunicator",
       [](ncclComm_t) { return ncclAllReduce(kData, kData, 1, ncclFloat, ncclSum, someMemory(), nullptr); },
       ncclInvalidArgument, "Error: corrupted comm object detected"},
      {"DestroyNull", [](ncclComm_t) { return ncclCommDestroy(nullptr); }, ncclSuccess, ""},
      {"AbortNull", [](ncclComm_t) { return ncclCommAbort(nullptr); }, ncclSuccess, ""},
      {"FinalizeNull", [](ncclComm_t) { return ncclCommFinalize(nullptr); }, ncclSuccess, ""},
      {"RevokeNullWithBadFlags", [](ncclComm_t) { return ncclCommRevoke(nullptr, 77); }, ncclSuccess, ""},
      {"DeregisterNullHandle", [](ncclComm_t) { return ncclCommDeregister(nullptr, nullptr); }, ncclSuccess, ""},
      {"GroupEndAlone", [](ncclComm_t) { return ncclGroupEnd(); }, ncclInvalidUsage,
       "ncclGroupEnd: not in a group call."},
      {"SimulateEndWithoutInitializer", [](ncclComm_t) { return ncclGroupSimulateEnd(&unknownInfo); },
       ncclInvalidArgument, "NCCL_SIM_INFO_INITIALIZER"},
      {"DestroyBuiltInOp", [](ncclComm_t) { return ncclRedOpDestroy(ncclSum, nullptr); }, ncclInvalidArgument,
       "built in"},
      {"DestroyNegativeOp", [](ncclComm_t) { return ncclRedOpDestroy(kNegativeOp, nullptr); }, ncclInvalidArgument,
       "invalid reduction operation"},
      {"DestroyOpNullComm", [](ncclComm_t) { return ncclRedOpDestroy(kUnknownOp, nullptr); }, ncclInvalidArgument,
       "comm argument is NULL"},
      {"ParamUnknown", [](ncclComm_t) { return ncclParamBind(&handle, "NCCL_NO_SUCH"); }, ncclInvalidArgument,
       "NCCL_NO_SUCH"},
      {"ParamNullKey", [](ncclComm_t) { return ncclParamBind(&handle, nullptr); }, ncclInvalidArgument, "key"},
      {"ParamWrongType",
       [](ncclComm_t) {
         return ncclParamBind(&handle, "NCCL_SET_THREAD_NAME") ? ncclInternalError : ncclParamGetStr(handle, &text);
       },
       ncclInvalidArgument, "NCCL_SET_THREAD_NAME"},
  };
}

std::vector<Row> rowsOfInits() {
  static ncclComm_t made;
  static ncclUniqueId foreign{};
  return {
      {"InitNoOutput", [](ncclComm_t) { return ncclCommInitRank(nullptr, 1, foreign, 0); }, ncclInvalidArgument,
       "CommInitRank : comm argument is NULL"},
      {"InitForeignId", [](ncclComm_t) { return ncclCommInitRank(&made, 1, foreign, 0); }, ncclInvalidArgument,
       "was not made by this library's ncclGetUniqueId"},
      {"InitAllNoOutput", [](ncclComm_t) { return ncclCommInitAll(nullptr, 1, nullptr); }, ncclInvalidArgument,
       "CommInitAll : comms argument is NULL"},
      {"InitAllNegative", [](ncclComm_t) { return ncclCommInitAll(&made, -1, nullptr); }, ncclInvalidArgument,
       "invalid device count requested : -1"},
      {"ConfigWithoutInitializer", [](ncclComm_t) { return initWithConfig(&ncclConfig_t::magic, 17U); },
       ncclInvalidArgument, "NCCL_CONFIG_INITIALIZER"},
      {"ConfigBlockingTwo", [](ncclComm_t) { return initWithConfig(&ncclConfig_t::blocking, 2); }, ncclInvalidArgument,
       "blocking"},
      {"ConfigNoBlocks", [](ncclComm_t) { return initWithConfig(&ncclConfig_t::maxCTAs, 0); }, ncclInvalidArgument,
       "maxCTAs"},
      {"ConfigMinWithoutMax", [](ncclComm_t) { return initWithConfig(&ncclConfig_t::minCTAs, 4); }, ncclInvalidArgument,
       "minCTAs"},
      {"RankNegative", [](ncclComm_t) { return initOne(2, -1); }, ncclInvalidArgument, "Invalid rank requested : -1/2"},
      {"RankTooLarge", [](ncclComm_t) { return initOne(2, 2); }, ncclInvalidArgument, "Invalid rank requested : 2/2"},
      {"NoRanks", [](ncclComm_t) { return initOne(0, 0); }, ncclInvalidArgument, "Invalid rank requested : 0/0"},
      {"DeviceTooLarge", [](ncclComm_t) { return initDevices(0, 99); }, ncclInvalidArgument,
       "Invalid device requested : 99"},
      {"DeviceNegative", [](ncclComm_t) { return initDevices(-1, 0); }, ncclInvalidArgument,
       "Invalid device requested : -1"},
      {"SameRankTwice",
       [](ncclComm_t) {
         return initTwo({2, 0}, {2, 0});
       },
       ncclInvalidUsage, "rank 0"},
      {"OtherNumberOfRanks",
       [](ncclComm_t) {
         return initTwo({2, 0}, {3, 1});
       },
       ncclInvalidUsage, "3"},
      {"ScalableNoIds", [](ncclComm_t) { return ncclCommInitRankScalable(nullptr, 2, 0, 0, nullptr, nullptr); },
       ncclInvalidArgument, "unique ids"},
  };
}

class BadInputAlone : public testing::TestWithParam<Row> {};
TEST_P(BadInputAlone, GivesCodeAndText) {
  check(GetParam(), nullptr);
}
/// Bad numbers in settings: the Param API answers with what the library takes them for.
TEST(Params, AnswerWithWhatTheLibraryWorksWith) {
  ncclParamHandle_t handle = nullptr;
  ASSERT_EQ(ncclParamBind(&handle, "NCCL_SET_THREAD_NAME"), ncclSuccess);
  std::int64_t number = -1;
  EXPECT_EQ(ncclParamGetI64(handle, &number), ncclSuccess);
  EXPECT_EQ(number, 1) << "0x1";
  const char* value = nullptr;
  int length = 0;
  EXPECT_EQ(ncclParamGetParameter("NCCL_SET_THREAD_NAME", &value, &length), ncclSuccess);
  EXPECT_STREQ(value, "1");
  EXPECT_EQ(length, 1);
  const char** names = nullptr;
  EXPECT_EQ(ncclParamGetAllParameterKeys(&names, &length), ncclSuccess);
  EXPECT_GT(length, 100);
  const std::set<std::string> all(names, names + length);
  for (const char* name : {"NCCL_DEBUG", "NCCL_NO_CACHE", "NCCL_ALGO", "NCCL_BUFFSIZE", "TUTTI_STALL_SEC"}) {
    EXPECT_TRUE(all.contains(name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, BadInputAlone, testing::ValuesIn(rowsWithoutCommunicator()), rowName);
INSTANTIATE_TEST_SUITE_P(Init, BadInputAlone, testing::ValuesIn(rowsOfInits()), rowName);

std::vector<Row> rowsWithCommunicator() {
  static int list[] = {0};
  static ncclComm_t child;
  static ncclWindow_t window;
  static ncclWaitSignalDesc_t noSignals{0, 0, 0, 0};
  const auto reduce = [](ncclDataType_t type, ncclRedOp_t redOp, int root, std::size_t count) {
    return [=](ncclComm_t comm) { return ncclReduce(kData, kData, count, type, redOp, root, comm, nullptr); };
  };
  return {
      {"RootNegative", reduce(ncclFloat, ncclSum, -1, 1), ncclInvalidArgument, "Reduce : invalid root -1"},
      {"RootTooLarge", reduce(ncclFloat, ncclSum, 2, 1), ncclInvalidArgument, "Reduce : invalid root 2"},
      {"TypeTooLarge", reduce(kBadType, ncclSum, 0, 1), ncclInvalidArgument, "Reduce : invalid type 12"},
      {"TypeNegative", reduce(kNegativeType, ncclSum, 0, 1), ncclInvalidArgument, "Reduce : invalid type -1"},
      {"OpNegative", reduce(ncclFloat, kNegativeOp, 0, 1), ncclInvalidArgument, "invalid reduction operation"},
      {"OpUnknown", reduce(ncclFloat, kUnknownOp, 0, 1), ncclInvalidArgument,
       "reduction operation 1234 unknown to this communicator"},
      {"RootBeforeType", reduce(kBadType, ncclSum, 9, 1), ncclInvalidArgument, "invalid root 9"},
      {"TypeBeforeOp", reduce(kBadType, kUnknownOp, 0, 1), ncclInvalidArgument, "invalid type 12"},
      {"NoElementsStillCheckTheRoot", reduce(ncclFloat, ncclSum, 5, 0), ncclInvalidArgument, "invalid root 5"},
      {"NoElementsIsFine", reduce(ncclFloat, ncclSum, 0, 0), ncclSuccess, ""},
      {"PeerTooLarge", [](ncclComm_t c) { return ncclSend(kData, 1, ncclFloat, 2, c, nullptr); }, ncclInvalidArgument,
       "Send : invalid root 2"},
      {"SendToSelfAlone", [](ncclComm_t c) { return ncclSend(kData, 1, ncclFloat, 0, c, nullptr); }, ncclInvalidUsage,
       "Trying to send to self without a matching recv"},
      {"RecvFromSelfAlone", [](ncclComm_t c) { return ncclRecv(kData, 1, ncclFloat, 0, c, nullptr); }, ncclInvalidUsage,
       "Trying to recv to self without a matching send"},
      {"GatherRootTooLarge", [](ncclComm_t c) { return ncclGather(kData, kData, 1, ncclFloat, 2, c, nullptr); },
       ncclInvalidArgument, "Gather : invalid root 2"},
      {"ScatterRootNegative", [](ncclComm_t c) { return ncclScatter(kData, kData, 1, ncclFloat, -1, c, nullptr); },
       ncclInvalidArgument, "Scatter : invalid root -1"},
      {"AlltoAllTypeTooLarge", [](ncclComm_t c) { return ncclAlltoAll(kData, kData, 1, kBadType, c, nullptr); },
       ncclInvalidArgument, "AlltoAll : invalid type 12"},
      {"CountNull", [](ncclComm_t c) { return ncclCommCount(c, nullptr); }, ncclInvalidArgument,
       "count argument is NULL"},
      {"RevokeBadFlags", [](ncclComm_t c) { return ncclCommRevoke(c, 1); }, ncclInvalidArgument, "flags"},
      {"SplitNoOutput", [](ncclComm_t c) { return ncclCommSplit(c, 0, 0, nullptr, nullptr); }, ncclInvalidArgument,
       "newcomm argument is NULL"},
      {"ShrinkNoList", [](ncclComm_t c) { return ncclCommShrink(c, nullptr, 1, &child, nullptr, 0); },
       ncclInvalidArgument, "excludeRanksList argument is NULL"},
      {"ShrinkOneself", [](ncclComm_t c) { return ncclCommShrink(c, list, 1, &child, nullptr, 0); },
       ncclInvalidArgument, "rank 0 is in the list"},
      {"ShrinkNoOutput", [](ncclComm_t c) { return ncclCommShrink(c, list, 1, nullptr, nullptr, 0); },
       ncclInvalidArgument, "newcomm argument is NULL"},
      {"ShrinkBadFlags", [](ncclComm_t c) { return ncclCommShrink(c, list, 1, &child, nullptr, 2); },
       ncclInvalidArgument, "invalid flags 0x2"},
      {"GetUniqueIdNoOutput", [](ncclComm_t c) { return ncclCommGetUniqueId(c, nullptr); }, ncclInvalidArgument,
       "uniqueId argument is NULL"},
      {"GrowNoOutput", [](ncclComm_t c) { return ncclCommGrow(c, 9, nullptr, -1, nullptr, nullptr); },
       ncclInvalidArgument, "newcomm argument is NULL"},
      {"GrowToNothing", [](ncclComm_t c) { return ncclCommGrow(c, 0, nullptr, -1, &child, nullptr); },
       ncclInvalidArgument, "invalid number of ranks 0"},
      {"SuspendBadFlags", [](ncclComm_t c) { return ncclCommSuspend(c, 6); }, ncclInvalidArgument, "invalid flags 0x6"},
      {"ResumeUnsuspended", [](ncclComm_t c) { return ncclCommResume(c); }, ncclInvalidUsage, "is not suspended"},
      {"MemStatsNoOutput", [](ncclComm_t c) { return ncclCommMemStats(c, ncclStatGpuMemTotal, nullptr); },
       ncclInvalidArgument, "value argument is NULL"},
      {"MemStatsUnknown",
       [](ncclComm_t c) {
         std::uint64_t value = 0;
         return ncclCommMemStats(c, static_cast<ncclCommMemStat_t>(4), &value);
       },
       ncclInvalidArgument, "unknown statistic 4"},
      {"WindowWithoutBuffer", [](ncclComm_t c) { return ncclCommWindowRegister(c, nullptr, 8, &window, 0); },
       ncclInvalidArgument, "buff argument is NULL"},
      {"DeregisterUnknown", [](ncclComm_t c) { return ncclCommDeregister(c, list); }, ncclInvalidUsage,
       "Deregister: Could not find handle"},
      {"WaitForNothing", [](ncclComm_t c) { return ncclWaitSignal(1, &noSignals, c, nullptr); }, ncclInvalidArgument,
       "waits for 0 signals"},
      {"DestroyUnknownOp", [](ncclComm_t c) { return ncclRedOpDestroy(kUnknownOp, c); }, ncclInvalidArgument, ""},
  };
}

/// Calls in which nothing is wrong but that tutti does not have them yet.
std::vector<Row> rowsOfOperators() {
  static int list[] = {0};
  static ncclRedOp_t op;
  return {
      {"OperatorNoOutput",
       [](ncclComm_t c) { return ncclRedOpCreatePreMulSum(nullptr, list, ncclInt, ncclScalarHostImmediate, c); },
       ncclInvalidArgument, "op argument is NULL"},
      {"OperatorNoScalar",
       [](ncclComm_t c) { return ncclRedOpCreatePreMulSum(&op, nullptr, ncclInt, ncclScalarHostImmediate, c); },
       ncclInvalidArgument, "scalar argument is NULL"},
      {"OperatorTypeTooLarge",
       [](ncclComm_t c) { return ncclRedOpCreatePreMulSum(&op, list, kBadType, ncclScalarHostImmediate, c); },
       ncclInternalError, "invalid type 12"},
      {"OperatorTypeNegative",
       [](ncclComm_t c) { return ncclRedOpCreatePreMulSum(&op, list, kNegativeType, ncclScalarDevice, c); },
       ncclInvalidArgument, "invalid type -1"},
      {"OperatorScalarNowhere",
       [](ncclComm_t c) {
         return ncclRedOpCreatePreMulSum(&op, list, ncclInt, static_cast<ncclScalarResidence_t>(-1), c);
       },
       ncclInvalidArgument, "invalid residence -1"},
  };
}

std::vector<Row> rowsNotYet() {
  static std::uint64_t number;
  static ncclWaitSignalDesc_t oneSignal{1, 1, 0, 0};
  static ncclDevCommRequirements_t requirements = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  static ncclDevComm_t devComm;
  std::vector<Row> rows;
  const auto add = [&rows](const std::string& name, std::function<ncclResult_t(ncclComm_t)> call) {
    rows.push_back({name, std::move(call), ncclInvalidUsage, "tutti does not support nccl" + name + " yet"});
  };
  add("PutSignal", [](ncclComm_t c) {
    auto* const window = reinterpret_cast<ncclWindow_t>(&number);
    return ncclPutSignal(kData, 1, ncclFloat, 1, window, 0, 0, 0, 0, c, nullptr);
  });
  add("Signal", [](ncclComm_t c) { return ncclSignal(1, 0, 0, 0, c, nullptr); });
  add("WaitSignal", [](ncclComm_t c) { return ncclWaitSignal(1, &oneSignal, c, nullptr); });
  add("DevCommCreate", [](ncclComm_t c) { return ncclDevCommCreate(c, &requirements, &devComm); });
  return rows;
}

/// Two ranks in this process; the tests use rank 0, none of them needs the other's help.
class TwoRanks : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(ncclCommInitAll(comms_, 2, nullptr), ncclSuccess) << ncclGetLastError(nullptr); }
  void TearDown() override {
    for (ncclComm_t comm : comms_) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  }
  ncclComm_t comms_[2] = {};
};
class BadInput : public TwoRanks, public testing::WithParamInterface<Row> {};
class CheckPointers : public TwoRanks {};

TEST_P(BadInput, GivesCodeAndText) {
  check(GetParam(), comms_[0]);
}
INSTANTIATE_TEST_SUITE_P(Table, BadInput, testing::ValuesIn(rowsWithCommunicator()), rowName);
INSTANTIATE_TEST_SUITE_P(Operators, BadInput, testing::ValuesIn(rowsOfOperators()), rowName);
INSTANTIATE_TEST_SUITE_P(NotYet, BadInput, testing::ValuesIn(rowsNotYet()), rowName);

TEST_F(TwoRanks, OperatorsBelongToTheirTypeAndCommunicator) {
  float factor = 2;
  ncclRedOp_t op = ncclSum;
  ASSERT_EQ(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat, ncclScalarHostImmediate, comms_[0]), ncclSuccess);
  EXPECT_GE(static_cast<int>(op), static_cast<int>(ncclNumOps));
  const auto expect = [&](ncclDataType_t type, std::size_t count, ncclComm_t comm, const std::string& text) {
    const auto call = [=](ncclComm_t c) { return ncclAllReduce(kData, kData, count, type, op, c, nullptr); };
    check({"", call, text.empty() ? ncclSuccess : ncclInvalidArgument, text}, comm);
  };
  expect(ncclDouble, 1, comms_[0], "operator was made for f32");
  expect(ncclDouble, 0, comms_[0], "");  // nothing to do: not looked at
  expect(ncclFloat, 1, comms_[1], "unknown to this communicator");
  EXPECT_EQ(ncclRedOpDestroy(op, comms_[1]), ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpDestroy(op, comms_[0]), ncclSuccess);
  EXPECT_EQ(ncclRedOpDestroy(op, comms_[0]), ncclInvalidArgument);
  expect(ncclFloat, 1, comms_[0], "unknown to this communicator");
}

TEST_F(TwoRanks, RegistrationsAreCounted) {
  constexpr std::size_t kBytes = 3 << 20;
  void* buffer = nullptr;
  ASSERT_EQ(ncclMemAlloc(&buffer, kBytes), ncclSuccess);
  void* handle = nullptr;
  void* again = nullptr;
  EXPECT_EQ(ncclCommRegister(comms_[0], buffer, kBytes, &handle), ncclSuccess);
  EXPECT_NE(handle, nullptr);
  EXPECT_EQ(ncclCommRegister(comms_[0], static_cast<char*>(buffer) + 8192, 100, &again), ncclSuccess);
  EXPECT_EQ(again, handle) << "it lies in the first one";
  check({"", [&](ncclComm_t c) { return ncclCommDeregister(c, handle); }, ncclInvalidUsage, "Could not find handle"},
        comms_[1]);
  EXPECT_EQ(ncclCommDeregister(comms_[0], handle), ncclSuccess);
  EXPECT_EQ(ncclCommDeregister(comms_[0], handle), ncclSuccess);
  check({"", [&](ncclComm_t c) { return ncclCommDeregister(c, handle); }, ncclInvalidUsage, "Could not find handle"},
        comms_[0]);
  EXPECT_EQ(ncclCommRegister(comms_[0], buffer, kBytes, &handle), ncclSuccess) << "left to the communicator";
  EXPECT_EQ(ncclMemFree(buffer), ncclSuccess);
}

TEST_F(TwoRanks, OnlyMemoryOfTheirDeviceIsRegistered) {
  constexpr std::size_t kBytes = 4096;
  void* buffer = nullptr;
  ASSERT_EQ(ncclMemAlloc(&buffer, kBytes), ncclSuccess);
  void* handle = nullptr;
  const auto registering = [&](void* from, std::size_t bytes) {
    return [&handle, from, bytes](ncclComm_t c) { return ncclCommRegister(c, from, bytes, &handle); };
  };
  check({"", registering(buffer, 0), ncclInvalidArgument, "size is 0"}, comms_[0]);
  check({"", registering(buffer, std::size_t{1} << 40), ncclInvalidArgument, "are allocated"}, comms_[0]);
  check({"", registering(buffer, kBytes), ncclInvalidArgument, "is memory of device 0"}, comms_[1]);
  check({"", registering(&handle, 8), ncclUnhandledCudaError, "CUDA does not know the address"}, comms_[0]);
  check({"", [&](ncclComm_t c) { return ncclCommRegister(c, buffer, kBytes, nullptr); }, ncclInvalidArgument,
         "handle argument is NULL"},
        comms_[0]);
  EXPECT_EQ(handle, nullptr);
  EXPECT_EQ(ncclMemFree(buffer), ncclSuccess);
}

TEST_F(TwoRanks, WindowsAreAcceptedWithoutEffect) {
  void* buffer = nullptr;
  ASSERT_EQ(ncclMemAlloc(&buffer, 4096), ncclSuccess);
  auto* window = reinterpret_cast<ncclWindow_t>(&buffer);
  EXPECT_EQ(ncclCommWindowRegister(comms_[0], buffer, 4096, &window, NCCL_WIN_COLL_SYMMETRIC), ncclSuccess);
  EXPECT_EQ(window, nullptr);
  EXPECT_EQ(ncclCommWindowDeregister(comms_[0], window), ncclSuccess);
  EXPECT_EQ(ncclMemFree(buffer), ncclSuccess);
}

TEST_F(CheckPointers, RefuseWhatTheDeviceDoesNotOwn) {
  void* own = nullptr;
  int onStack = 0;
  ASSERT_EQ(ncclMemAlloc(&own, 64), ncclSuccess);
  const auto expect = [&](const void* send, void* recv, int root, ncclResult_t code, const std::string& text) {
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclBroadcast(send, recv, 1, ncclFloat, root, comms_[0], nullptr), code);
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;  // nothing is launched: the other rank does not take part
    EXPECT_EQ(ncclGroupSimulateEnd(&info), code);
    if (code == ncclSuccess) return;
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find(text), std::string::npos) << ncclGetLastError(nullptr);
  };
  expect(own, own, 0, ncclSuccess, "");
  expect(&onStack, own, 0, ncclInvalidArgument, "Broadcast : sendbuff");
  expect(own, &onStack, 0, ncclInvalidArgument, "Broadcast : recvbuff");
  expect(own, nullptr, 0, ncclInvalidArgument, "is not a valid pointer");
  expect(&onStack, own, 1, ncclSuccess, "");  // off the root nobody reads sendbuff
  // The same memory, seen from the communicator of the other device.
  EXPECT_EQ(ncclBroadcast(own, own, 1, ncclFloat, 0, comms_[1], nullptr), ncclInvalidArgument);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("is memory of device 0"), std::string::npos)
      << ncclGetLastError(nullptr);
  EXPECT_EQ(ncclMemFree(own), ncclSuccess);
}

TEST(NotBuiltYet, SaysSoByName) {
  ncclLLA2AHandle_t handle;
  ncclDevResourceRequirements_t requirements;
  EXPECT_EQ(ncclLLA2ACreateRequirement(1, 1, &handle, &requirements), ncclInvalidUsage);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("tutti does not support ncclLLA2ACreateRequirement yet"),
            std::string::npos);
}

TEST(Group, ErrorOfACallIsRepeatedByTheOutermostEnd) {
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 1, ncclFloat, ncclSum, nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << "an inner end does nothing";
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << "the error is forgotten";
}

TEST(Info, VersionAndTextsAreTheInterfaces) {
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(version, 23203);
  EXPECT_STREQ(ncclGetErrorString(ncclSuccess), "no error");
  EXPECT_STREQ(ncclGetErrorString(ncclTimeout), "timeout");
  EXPECT_STREQ(ncclGetErrorString(static_cast<ncclResult_t>(77)), "unknown result code");
}

}  // namespace
