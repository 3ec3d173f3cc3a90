#include "base/log.h"

#include <gtest/gtest.h>

#include "support/log_capture.h"

namespace tutti {
namespace {

TEST(Log, FailReturnsItsCodeAndKeepsItsText) {
  test::expectLog("NCCL ERROR the disk is full");
  const Status status = fail(ncclSystemError, "the disk is {}", "full");
  EXPECT_EQ(status.code(), ncclSystemError);
  EXPECT_STREQ(lastErrorText(), "the disk is full");
}

}  // namespace
}  // namespace tutti
