// Sizes that no memory has, and products that 64 bits do not hold: refused by every call that takes a count or a size,
// and the largest one that is allowed goes through.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "nccl_device.h"

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 60;
constexpr std::size_t kMostFloats = kMostBytes / sizeof(float);
constexpr int kRanks = 2;
float* const kData = nullptr;

/// A call that moves `count` floats on rank 0.
struct Move {
  std::string name;
  std::function<ncclResult_t(ncclComm_t, std::size_t)> call;
  std::size_t blocks = 1;  ///< how many times `count` the larger buffer holds
  std::string ranks;       ///< how the text speaks of them
};
std::ostream& operator<<(std::ostream& out, const Move& move) {
  return out << move.name;
}

std::string moveName(const testing::TestParamInfo<Move>& info) {
  return info.param.name;
}

std::vector<Move> moves() {
  constexpr ncclDataType_t kType = ncclFloat;
  const auto of = [](auto function, auto... rest) {
    return [=](ncclComm_t c, std::size_t n) { return function(kData, kData, n, kType, rest..., c, nullptr); };
  };
  const auto configured = [](auto function, auto... rest) {
    return [=](ncclComm_t c, std::size_t n) { return function(kData, kData, n, kType, rest..., c, nullptr, nullptr); };
  };
  const auto one = [](auto function, int peer) {
    return [=](ncclComm_t c, std::size_t n) { return function(kData, n, kType, peer, c, nullptr); };
  };
  return {
      {"AllReduce", of(ncclAllReduce, ncclSum)},
      {"Reduce", of(ncclReduce, ncclSum, 1)},
      {"Broadcast", of(ncclBroadcast, 1)},
      {"Bcast", one(ncclBcast, 1)},
      {"Send", one([](auto... a) { return ncclSend(a...); }, 1)},
      {"Recv", one(ncclRecv, 1)},
      {"AllGather", of(ncclAllGather), kRanks, " from each of 2 ranks"},
      {"Gather", of(ncclGather, 1), kRanks, " from each of 2 ranks"},
      {"ReduceScatter", of(ncclReduceScatter, ncclSum), kRanks, " for each of 2 ranks"},
      {"AlltoAll", of(ncclAlltoAll), kRanks, " for each of 2 ranks"},
      {"Scatter", of(ncclScatter, 1), kRanks, " for each of 2 ranks"},
      {"AllReduceConfig", configured(ncclAllReduceConfig, ncclSum)},
      {"ReduceConfig", configured(ncclReduceConfig, ncclSum, 1)},
      {"BroadcastConfig", configured(ncclBroadcastConfig, 1)},
      {"AllGatherConfig", configured(ncclAllGatherConfig), kRanks, " from each of 2 ranks"},
      {"GatherConfig", configured(ncclGatherConfig, 1), kRanks, " from each of 2 ranks"},
      {"ReduceScatterConfig", configured(ncclReduceScatterConfig, ncclSum), kRanks, " for each of 2 ranks"},
      {"AlltoAllConfig", configured(ncclAlltoAllConfig), kRanks, " for each of 2 ranks"},
      {"ScatterConfig", configured(ncclScatterConfig, 1), kRanks, " for each of 2 ranks"},
  };
}

void expectText(const std::string& text) {
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find(text), std::string::npos)
      << "text is: " << ncclGetLastError(nullptr) << "\nnot: " << text;
}

/// Communicators in this process, one per device.
template <int kCount>
class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(ncclCommInitAll(comms_, kCount, nullptr), ncclSuccess) << ncclGetLastError(nullptr);
  }
  void TearDown() override {
    for (ncclComm_t comm : comms_) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  }
  ncclComm_t comms_[kCount] = {};
};
class SizeOfMove : public Ranks<kRanks>, public testing::WithParamInterface<Move> {
 protected:
  void expectRefused(std::size_t count, const std::string& product) {
    const Move& move = GetParam();
    EXPECT_EQ(move.call(comms_[0], count), ncclInvalidArgument);
    std::string name = move.name == "Bcast" ? "Broadcast" : move.name;
    name.erase(std::min(name.find("Config"), name.size()));
    expectText(name + " of " + std::to_string(count) + " elements of ncclFloat32" + move.ranks + " is " + product +
               "; at most 2^60 are possible");
  }
};
class SizeOnLoneRank : public Ranks<1> {};
using SizeOfMemory = SizeOnLoneRank;

TEST_P(SizeOfMove, BeyondTheLimitIsRefusedWithItsProduct) {
  const bool blocks = GetParam().blocks > 1;
  expectRefused(kMostFloats / GetParam().blocks + 1, "more than 2^60 bytes");
  expectRefused(std::size_t{1} << 62, blocks ? "2^65 bytes" : "2^64 bytes");
  expectRefused((std::size_t{1} << 62) + 1, blocks ? "more than 2^65 bytes" : "more than 2^64 bytes");
  expectRefused(~std::size_t{0}, blocks ? "more than 2^66 bytes" : "more than 2^65 bytes");
  // 2^63 * 4 * 2 is 0 in 64 bits.
  expectRefused(std::size_t{1} << 63, blocks ? "2^66 bytes" : "2^65 bytes");
}

TEST_P(SizeOfMove, InAGroupFailsItsEnd) {
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(GetParam().call(comms_[0], kMostFloats + 1), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
}

TEST_P(SizeOfMove, AtTheLimitIsPlanned) {
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(GetParam().call(comms_[0], kMostFloats / GetParam().blocks), ncclSuccess);
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;  // nothing is launched: there is no such memory
  EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_GT(info.estimatedTime, 1e9F) << "an exbibyte in less than a thousand seconds";
}

TEST_P(SizeOfMove, ManyAtTheLimitArePlannedTogether) {
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(GetParam().call(comms_[0], kMostFloats / GetParam().blocks), ncclSuccess);
  }
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_GT(info.estimatedTime, 1e9F);
}

INSTANTIATE_TEST_SUITE_P(All, SizeOfMove, testing::ValuesIn(moves()), moveName);

TEST_F(SizeOnLoneRank, AtTheLimitIsCarriedOutInPlace) {
  ncclComm_t c = comms_[0];
  EXPECT_EQ(ncclAllReduce(kData, kData, kMostFloats, ncclFloat, ncclSum, c, nullptr), ncclSuccess);
  EXPECT_EQ(ncclReduce(kData, kData, kMostFloats, ncclFloat, ncclSum, 0, c, nullptr), ncclSuccess);
  EXPECT_EQ(ncclBroadcast(kData, kData, kMostFloats, ncclFloat, 0, c, nullptr), ncclSuccess);
  EXPECT_EQ(ncclBcast(kData, kMostFloats, ncclFloat, 0, c, nullptr), ncclSuccess);
  EXPECT_EQ(ncclAllGather(kData, kData, kMostFloats, ncclFloat, c, nullptr), ncclSuccess);
  EXPECT_EQ(ncclReduceScatter(kData, kData, kMostFloats, ncclFloat, ncclSum, c, nullptr), ncclSuccess);
  EXPECT_EQ(ncclAlltoAll(kData, kData, kMostFloats, ncclFloat, c, nullptr), ncclSuccess);
  EXPECT_EQ(ncclGather(kData, kData, kMostFloats, ncclFloat, 0, c, nullptr), ncclSuccess);
  EXPECT_EQ(ncclScatter(kData, kData, kMostFloats, ncclFloat, 0, c, nullptr), ncclSuccess);
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclSend(kData, kMostFloats, ncclFloat, 0, c, nullptr), ncclSuccess);
  EXPECT_EQ(ncclRecv(kData, kMostFloats, ncclFloat, 0, c, nullptr), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
}

TEST_F(SizeOnLoneRank, TypesCountWithTheirOwnSize) {
  ncclComm_t c = comms_[0];
  EXPECT_EQ(ncclAllGather(kData, kData, kMostBytes, ncclInt8, c, nullptr), ncclSuccess);
  EXPECT_EQ(ncclAllGather(kData, kData, kMostBytes / 2, ncclBfloat16, c, nullptr), ncclSuccess);
  EXPECT_EQ(ncclAllGather(kData, kData, kMostBytes / 2 + 1, ncclBfloat16, c, nullptr), ncclInvalidArgument);
  expectText("elements of ncclBfloat16 from each of 1 ranks is more than 2^60 bytes");
  EXPECT_EQ(ncclAllGather(kData, kData, kMostBytes / 4, ncclDouble, c, nullptr), ncclInvalidArgument);
  expectText("elements of ncclFloat64 from each of 1 ranks is 2^61 bytes");
}

TEST_F(SizeOfMemory, BeyondTheLimitIsRefused) {
  void* pointer = nullptr;
  EXPECT_EQ(ncclMemAlloc(&pointer, kMostBytes + 1), ncclInvalidArgument);
  expectText("MemAlloc of 1152921504606846977 bytes; at most 2^60 are possible");
  EXPECT_EQ(ncclMemAlloc(&pointer, ~std::size_t{0}), ncclInvalidArgument);
  EXPECT_EQ(ncclMemAlloc(&pointer, kMostBytes), ncclUnhandledCudaError) << "a size like any other, but no memory";
  expectText("memory left");
  void* handle = nullptr;
  EXPECT_EQ(ncclCommRegister(comms_[0], kData, kMostBytes, &handle), ncclUnhandledCudaError) << "no memory";
  expectText("CUDA does not know the address");
  EXPECT_EQ(ncclCommRegister(comms_[0], kData, kMostBytes + 1, &handle), ncclInvalidArgument);
  expectText("CommRegister of 1152921504606846977 bytes; at most 2^60 are possible");
  ncclWindow_t window = nullptr;
  EXPECT_EQ(ncclCommWindowRegister(comms_[0], &handle, kMostBytes, &window, 0), ncclSuccess);
  EXPECT_EQ(ncclCommWindowRegister(comms_[0], &handle, kMostBytes + 1, &window, 0), ncclInvalidArgument);
  expectText("CommWindowRegister of 1152921504606846977 bytes; at most 2^60 are possible");
}

TEST_F(SizeOnLoneRank, OfAPutIsCheckedBeforeItsWindow) {
  EXPECT_EQ(ncclPutSignal(kData, kMostFloats + 1, ncclFloat, 0, nullptr, 0, 0, 0, 0, comms_[0], nullptr),
            ncclInvalidArgument);
  expectText("PutSignal of 288230376151711745 elements of ncclFloat32 is more than 2^60 bytes");
  EXPECT_EQ(ncclPutSignal(kData, kMostFloats, ncclFloat, 0, nullptr, 0, 0, 0, 0, comms_[0], nullptr),
            ncclInvalidArgument);
  expectText("peerWin argument is NULL");
}

}  // namespace
