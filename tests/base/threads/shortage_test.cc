#include "base/threads/shortage.h"

#include <gtest/gtest.h>

#include <new>
#include <string>

#include "base/log.h"
#include "support/log_capture.h"
#include "support/short_memory.h"

namespace tutti {
namespace {

TEST(Shortage, ALoopGoesOnOnceThereIsMemoryAgain) {
  int begun = 0;
  throughShortages([&] {
    if (++begun < 3) throw std::bad_alloc();
  });
  EXPECT_EQ(begun, 3);
}

TEST(Shortage, OtherErrorsAreNotRepeated) {
  EXPECT_THROW(throughShortages([] { throw std::string("other"); }), std::string);
}

TEST(Shortage, AnErrorWithoutMemoryForItsTextIsStillAnError) {
  std::string kept;
  Status status;
  test::allowLog("what failed");
  {
    const test::NoMemory none;
    status = fail(ncclSystemError, "what failed is {} {}", 1, "a text that is too long for a buffer on the stack");
  }
  EXPECT_EQ(status.code(), ncclSystemError);
  EXPECT_STREQ(lastErrorText(), "what failed is {} {}") << "the format, where it cannot be filled in";
}

}  // namespace
}  // namespace tutti
