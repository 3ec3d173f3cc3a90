// Where log lines go, and what is said of a debug file that cannot be used.
#include "base/log_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "base/log.h"
#include "support/captured_stdout.h"
#include "support/log_capture.h"
#include "support/scoped_log.h"

namespace tutti {
namespace {

TEST(LogOutput, WithoutAFileGoesToStandardOutputBehindWhatIsThere) {
  const test::CapturedStdout out;
  LogOutput log;
  log.open("");
  std::fputs("first ", stdout);
  log.write("second\n");
  EXPECT_EQ(out.text(), "first second\n");
  EXPECT_EQ(log.takeTrouble(), "");
}

TEST(LogOutput, OfAFileThatCannotBeOpenedGoesToStandardOutputAndIsTold) {
  const test::CapturedStdout out;
  LogOutput log;
  log.open("/nowhere/log");
  log.write("line\n");
  EXPECT_EQ(out.text(), "line\n");
  EXPECT_EQ(log.takeTrouble(),
            "NCCL_DEBUG_FILE=/nowhere/log cannot be opened: No such file or directory (2); check the path: its folder "
            "must exist. Log lines go to standard output instead");
  EXPECT_EQ(log.takeTrouble(), "");
}

TEST(LogOutput, ToAFullDiskDropsLinesAndIsToldOnce) {
  LogOutput log;
  log.open("/dev/full");
  for (int i = 0; i < 3; ++i) log.write("line\n");
  EXPECT_EQ(log.takeTrouble(),
            "NCCL_DEBUG_FILE=/dev/full cannot be written: No space left on device (28); make room, or name another "
            "file. Log lines are dropped until it can be");
  log.write("line\n");
  EXPECT_EQ(log.takeTrouble(), "");
}

TEST(LogOutput, ToAFifoWaitsOnceForAReaderThatTakesNothing) {
  const std::string path = testing::TempDir() + "tutti-log-fifo-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Fd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  LogOutput log;
  log.open(path);
  ::unlink(path.c_str());
  const std::string line(1024, 'x');
  for (int i = 0; i < 2000; ++i) log.write(line);  // to wait for each would take half an hour
  EXPECT_NE(log.takeTrouble().find("Connection timed out (110); whoever reads it takes nothing"), std::string::npos);
  std::string into(1 << 16, '\0');
  while (::read(reader.get(), into.data(), into.size()) > 0) {
  }
  log.write("again\n");
  ASSERT_EQ(::read(reader.get(), into.data(), into.size()), 6);
  EXPECT_EQ(into.substr(0, 6), "again\n");
}

TEST(LogOutput, TroubleIsALineOfItsOwnOnStandardOutput) {
  const test::CapturedStdout out;
  const test::ScopedEnv file("NCCL_DEBUG_FILE", "/dev/full");
  const test::ScopedLog level("INFO");
  setLogSink(nullptr, nullptr);
  for (int i = 0; i < 3; ++i) info(kInit, "lost");
  const std::string said = out.text();
  const std::size_t first = said.find("NCCL WARN NCCL_DEBUG_FILE=/dev/full cannot be written");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("NCCL WARN", first + 1), std::string::npos) << said;
  EXPECT_EQ(said.find("lost"), std::string::npos) << said;
}

}  // namespace
}  // namespace tutti
