#include "comm/state/lost_peer.h"

#include <gtest/gtest.h>

#include <string>

#include "base/log.h"
#include "support/log_capture.h"

namespace tutti::comm {
namespace {

const std::string kAbort = "rank 2 aborted its communicator";
const std::string kDeath = "rank 1 died or lost its network";
const std::string kOther = "rank 3 failed: its disk is full";

class LostPeerTest : public testing::Test {
 protected:
  LostPeerTest() {
    for (const std::string& text : {kAbort, kDeath, kOther}) test::allowLog(text);
  }
  void expectFailed(ncclResult_t code, const std::string& text) {
    EXPECT_EQ(abort_.status().code(), code);
    EXPECT_EQ(abort_.text(), text);
    EXPECT_NE(std::string(lastErrorText()).find(text), std::string::npos) << lastErrorText();
  }

  Abort abort_;
  LostPeer lost_{abort_};
};

TEST_F(LostPeerTest, IsAFailureAtOnceForWhoWaits) {
  EXPECT_FALSE(lost_.heard());
  lost_.hear(Status(ncclRemoteError), kDeath, false);
  expectFailed(ncclRemoteError, kDeath);
}

TEST_F(LostPeerTest, IsNoFailureBeforeItIsNeeded) {
  lost_.endWait();
  EXPECT_TRUE(lost_.need().ok()) << "nobody is lost";
  lost_.hear(Status(ncclRemoteError), kDeath, false);
  EXPECT_TRUE(lost_.heard());
  EXPECT_FALSE(abort_.raised());
  EXPECT_EQ(lost_.need().code(), ncclRemoteError);
  expectFailed(ncclRemoteError, kDeath);
}

TEST_F(LostPeerTest, IsAFailureForWhoBeginsToWait) {
  lost_.endWait();
  lost_.hear(Status(ncclRemoteError), kDeath, false);
  EXPECT_EQ(lost_.beginWait().code(), ncclRemoteError);
  expectFailed(ncclRemoteError, kDeath);
}

TEST_F(LostPeerTest, IsNoFailureAfterTheLastOfSeveralWaits) {
  EXPECT_TRUE(lost_.beginWait().ok());
  lost_.endWait();
  lost_.endWait();
  lost_.hear(Status(ncclRemoteError), kDeath, false);
  EXPECT_FALSE(abort_.raised());
}

TEST_F(LostPeerTest, ABetterKnownCauseTakesThePlaceOfTheTextThatWasToldAndNotOfItsStatus) {
  lost_.endWait();
  lost_.hear(Status(ncclRemoteError), kAbort, false);
  EXPECT_EQ(lost_.need().code(), ncclRemoteError);
  expectFailed(ncclRemoteError, kAbort);
  lost_.hear(Status(ncclSystemError), kDeath, true);
  expectFailed(ncclRemoteError, kDeath);
}

TEST_F(LostPeerTest, WhatIsKnownNoBetterChangesNothingThatWasTold) {
  lost_.hear(Status(ncclRemoteError), kAbort, false);
  lost_.hear(Status(ncclSystemError), kOther, false);
  expectFailed(ncclRemoteError, kAbort);
}

TEST_F(LostPeerTest, OfWhatNobodyNeedsYetTheBestKnownCauseIsTold) {
  lost_.endWait();
  lost_.hear(Status(ncclRemoteError), kAbort, false);
  lost_.hear(Status(ncclSystemError), kOther, false);
  lost_.hear(Status(ncclRemoteError), kDeath, true);
  lost_.hear(Status(ncclSystemError), kOther, false);
  EXPECT_EQ(lost_.need().code(), ncclRemoteError);
  expectFailed(ncclRemoteError, kDeath);
}

TEST_F(LostPeerTest, AnEarlierFailureOfTheRankItselfKeepsItsText) {
  abort_.raise(Status(ncclInternalError), kOther);
  lost_.hear(Status(ncclRemoteError), kDeath, false);
  EXPECT_EQ(lost_.need().code(), ncclInternalError);
  EXPECT_EQ(abort_.text(), kOther);
}

}  // namespace
}  // namespace tutti::comm
