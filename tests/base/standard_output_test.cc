#include "base/standard_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "support/captured_stdout.h"

namespace tutti {
namespace {

TEST(StandardOutput, ThatNobodyReadsOrThatIsClosedEndsNothing) {
  const test::CapturedStdout out;
  int ends[2]{-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_GE(::dup2(ends[1], STDOUT_FILENO), 0);
  ::close(ends[0]);
  ::close(ends[1]);
  std::fputs("of the application, ", stdout);
  writeToStdout("of the log\n");
  ::close(STDOUT_FILENO);
  writeToStdout("of the log\n");
}

TEST(StandardOutput, IsWrittenBehindWhatTheApplicationHasPrinted) {
  const test::CapturedStdout out;
  std::fputs("of the application, ", stdout);
  writeToStdout("of the library\n");
  EXPECT_EQ(out.text(), "of the application, of the library\n");
}

}  // namespace
}  // namespace tutti
