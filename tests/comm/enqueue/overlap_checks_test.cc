#include "comm/enqueue/overlap_checks.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/log.h"
#include "comm/enqueue/shell.h"
#include "support/log_capture.h"

namespace tutti::comm {
namespace {

constexpr int kRanks = 4;
constexpr int kRank = 2;
constexpr std::size_t kCount = 10;

struct Calls {
  explicit Calls(int nRanks = kRanks, bool checks = true) {
    CommIdentity who;
    who.rank = nRanks == 1 ? 0 : kRank;
    who.nRanks = nRanks;
    CommOptions options;
    options.checkOverlap = checks;
    comm = std::make_unique<ncclComm>(std::move(who), test::configOf(true), std::make_shared<const CommSettings>(),
                                      std::move(options));
  }
  /// With buffers at these elements of one allocation.
  bool refused(ApiFunc func, int send, int recv, int root = kRank, std::size_t count = kCount) const {
    Op op;
    op.func = func;
    op.sendbuff = &memory[static_cast<std::size_t>(send)];
    op.recvbuff = &memory[static_cast<std::size_t>(recv)];
    op.count = count;
    op.datatype = ncclInt32;
    op.root = root;
    return checkOverlap(*comm, op).code() == ncclInvalidArgument;
  }
  std::unique_ptr<ncclComm> comm;
  std::unique_ptr<int[]> memory = std::make_unique<int[]>(200);
};

class OverlapChecks : public testing::Test {
 protected:
  void SetUp() override { test::allowLog("TUTTI_CHECK_OVERLAP"); }
  Calls calls_;
};

TEST_F(OverlapChecks, VectorsMayBeTheSameAndNothingElse) {
  for (const ApiFunc func : {ApiFunc::AllReduce, ApiFunc::Reduce, ApiFunc::Broadcast}) {
    EXPECT_FALSE(calls_.refused(func, 0, 0));
    EXPECT_FALSE(calls_.refused(func, 0, 10));
    EXPECT_FALSE(calls_.refused(func, 10, 0));
    EXPECT_TRUE(calls_.refused(func, 0, 9));
    EXPECT_TRUE(calls_.refused(func, 1, 0));
  }
}

TEST_F(OverlapChecks, AGatheredVectorMayHoldItsOwnBlock) {
  for (const ApiFunc func : {ApiFunc::AllGather, ApiFunc::Gather}) {
    EXPECT_FALSE(calls_.refused(func, 20, 0)) << "this rank's block";
    EXPECT_FALSE(calls_.refused(func, 40, 0)) << "behind it";
    EXPECT_TRUE(calls_.refused(func, 0, 0)) << "rank 0's block, which rank 0 writes over";
    EXPECT_TRUE(calls_.refused(func, 21, 0));
    EXPECT_TRUE(calls_.refused(func, 39, 0));
    EXPECT_TRUE(calls_.refused(func, 0, 9));
  }
}

TEST_F(OverlapChecks, AScatteredVectorMayReceiveItsOwnBlock) {
  for (const ApiFunc func : {ApiFunc::ReduceScatter, ApiFunc::Scatter}) {
    EXPECT_FALSE(calls_.refused(func, 0, 20));
    EXPECT_FALSE(calls_.refused(func, 0, 40));
    EXPECT_TRUE(calls_.refused(func, 0, 0));
    EXPECT_TRUE(calls_.refused(func, 0, 30));
  }
}

TEST_F(OverlapChecks, AnExchangeHasNoFormInPlace) {
  EXPECT_FALSE(calls_.refused(ApiFunc::AlltoAll, 0, 40));
  EXPECT_TRUE(calls_.refused(ApiFunc::AlltoAll, 0, 0));
  EXPECT_TRUE(calls_.refused(ApiFunc::AlltoAll, 39, 0));
}

TEST_F(OverlapChecks, WhatThisRankDoesNotUseDoesNotOverlap) {
  for (const ApiFunc func : {ApiFunc::Reduce, ApiFunc::Broadcast, ApiFunc::Gather, ApiFunc::Scatter}) {
    EXPECT_FALSE(calls_.refused(func, 0, 5, 1));
  }
  EXPECT_FALSE(calls_.refused(ApiFunc::Send, 0, 5));
  EXPECT_FALSE(calls_.refused(ApiFunc::Recv, 0, 5));
  EXPECT_FALSE(calls_.refused(ApiFunc::AllGather, 0, 5, 0, 0)) << "nothing is moved";
}

TEST_F(OverlapChecks, ALoneRankAndTheSettingAreLeftAlone) {
  EXPECT_FALSE(Calls(1).refused(ApiFunc::AlltoAll, 0, 0, 0));
  EXPECT_FALSE(Calls(kRanks, false).refused(ApiFunc::AllGather, 0, 0));
}

TEST_F(OverlapChecks, TheTextHasBothRangesAndTheFormThatIsAllowed) {
  EXPECT_TRUE(calls_.refused(ApiFunc::AllGather, 0, 0));
  const std::string text = lastErrorText();
  for (const char* part : {"AllGather : sendbuff (0x", " overlap (rank 2 of 4 on host ",
                           "only in place, sendbuff == recvbuff + rank * sendcount"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tutti::comm
