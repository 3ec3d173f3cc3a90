#include "base/log.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "base/host.h"
#include "base/log_settings.h"
#include "base/trace.h"
#include "support/log_capture.h"

namespace tutti {
namespace {

/// Sets variables for one test and lets the log read them.
class LogEnv {
 public:
  LogEnv(std::initializer_list<std::pair<const char*, std::string>> settings) {
    for (const auto& [name, value] : settings) {
      ::setenv(name, value.c_str(), 1);
      names_.push_back(name);
    }
    resetLog();
  }
  ~LogEnv() {
    for (const char* name : names_) ::unsetenv(name);
    resetLog();
  }

 private:
  std::vector<const char*> names_;
};

std::string contentOf(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Log, FailReturnsItsCodeAndKeepsItsText) {
  test::expectLog("NCCL ERROR the disk is full");
  const Status status = fail(ncclSystemError, "the disk is {}", "full");
  EXPECT_EQ(status.code(), ncclSystemError);
  EXPECT_STREQ(lastErrorText(), "the disk is full");
}

TEST(Log, AnAlarmIsAWarningThatEverybodyGets) {
  for (const char* level : {"", "VERSION", "WARN"}) {
    const LogEnv env{{"NCCL_DEBUG", level}};
    setLogSink(nullptr, nullptr);
    testing::internal::CaptureStdout();
    warn("rank 2 is late");
    alarm("rank {} is {}", 3, "late");
    const std::string said = testing::internal::GetCapturedStdout();
    EXPECT_EQ(said.find("NCCL WARN rank 2 is late") != std::string::npos, std::string(level) == "WARN") << said;
    EXPECT_NE(said.find("NCCL WARN rank 3 is late"), std::string::npos) << said;
    EXPECT_STREQ(lastErrorText(), "rank 3 is late");
  }
}

TEST(Log, UsageMistakesAreWarnings) {
  test::expectLog("NCCL WARN bad root");
  EXPECT_EQ(fail(ncclInvalidArgument, "bad root").code(), ncclInvalidArgument);
}

TEST(Log, ErrorHasFileLineFunctionAndStamp) {
  test::expectLog("NCCL ERROR boom");
  fail(ncclInternalError, "boom").ignore();
  const std::regex shape(
      R"(\n\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] [^ :]+:\d+:\d+ \[0\] tests/base/log_test\.cc:\d+ \(TestBody\) NCCL ERROR boom\n)");
  EXPECT_TRUE(std::regex_match(test::capturedText(), shape)) << test::capturedText();
}

TEST(Log, InfoNeedsLevelAndSubsystem) {
  info(kInit, "silent");
  const LogEnv env{{"NCCL_DEBUG", "info"}};
  info(kNet, "not a default subsystem");
  info(kNet | kInit, "shown");
  const std::string expected =
      hostName() + ":" + std::to_string(::getpid()) + ":" + std::to_string(::gettid()) + " [0] NCCL INFO shown\n";
  EXPECT_EQ(test::capturedText(), expected);
}

TEST(Log, CallLinesHaveNoDevice) {
  const LogEnv env{{"NCCL_DEBUG", "TRACE"}, {"NCCL_DEBUG_SUBSYS", "CALL"}};
  logTrace(kCall, "ncclX()");
  EXPECT_NE(test::capturedText().find(std::to_string(::gettid()) + " NCCL CALL ncclX()\n"), std::string::npos);
}

TEST(Log, HotPathsKnowWhetherAnybodyWantsTraces) {
  {
    const LogEnv env{{"NCCL_DEBUG", "INFO"}};
    EXPECT_TRUE(tracing()) << "nobody knows yet";
    traceStep(kNet, "not asked for");
    EXPECT_FALSE(tracing());
  }
  const LogEnv env{{"NCCL_DEBUG", "TRACE"}, {"NCCL_DEBUG_SUBSYS", "NET"}};
  traceStep(kProxy, "another subsystem");
  traceStep(kNet, "step {}", 5);
  EXPECT_TRUE(tracing());
  EXPECT_NE(test::capturedText().find(" NCCL TRACE step 5\n"), std::string::npos);
  EXPECT_EQ(test::capturedText().find("another subsystem"), std::string::npos);
  EXPECT_EQ(test::capturedText().find("not asked for"), std::string::npos);
}

TEST(Log, LongLinesAreCutAt1024Bytes) {
  const LogEnv env{{"NCCL_DEBUG", "INFO"}};
  info(kInit, "{}", std::string(3000, 'x'));
  EXPECT_EQ(test::capturedText().size(), 1024U);
  EXPECT_TRUE(test::capturedText().ends_with("x\n"));
}

TEST(Log, DeviceHookFillsTheColumn) {
  const LogEnv env{{"NCCL_DEBUG", "INFO"}};
  setLogDeviceHook([] { return 7; });
  info(kInit, "here");
  setLogDeviceHook(nullptr);
  EXPECT_NE(test::capturedText().find(" [7] NCCL INFO here"), std::string::npos);
}

TEST(Log, FilePatternIsExpandedAndTheFileWritten) {
  const std::string stem = testing::TempDir() + "tutti_log_";
  const LogEnv env{{"NCCL_DEBUG", "WARN"}, {"NCCL_DEBUG_FILE", stem + "%h.%p"}};
  setLogSink(nullptr, nullptr);
  warn("into the file");
  const std::string path = stem + hostName() + "." + std::to_string(::getpid());
  const std::string content = contentOf(path);
  ::unlink(path.c_str());
  EXPECT_TRUE(content.starts_with("\n[")) << content;
  EXPECT_NE(content.find("NCCL WARN into the file\n"), std::string::npos);
}

TEST(Log, LevelRisesAfterTheFirstWarningWhereAsked) {
  const LogEnv env{{"NCCL_DEBUG", "WARN"}, {"NCCL_WARN_ENABLE_DEBUG_INFO", "1"}};
  test::expectLog("first");
  info(kInit, "before");
  warn("first");
  info(kInit, "after");
  EXPECT_EQ(test::capturedText().find("before"), std::string::npos);
  EXPECT_NE(test::capturedText().find("after"), std::string::npos);
}

TEST(LogSettings, LevelsAreCaseInsensitiveWords) {
  EXPECT_EQ(parseLogLevel("Warn"), LogLevel::Warn);
  EXPECT_EQ(parseLogLevel("version"), LogLevel::Version);
  EXPECT_EQ(parseLogLevel("3"), LogLevel::None);
}

TEST(LogSettings, SubsystemsInvertAndRejectUnknownWords) {
  EXPECT_EQ(parseSubsys("net,COLL"), kNet | kColl);
  EXPECT_EQ(parseSubsys("^NET"), kAllSubsys & ~kNet);
  EXPECT_EQ(parseSubsys("NET,NOPE"), kDefaultSubsys);
}

TEST(LogSettings, StampFormatTurnsUnderscoresIntoBlanks) {
  const MapEnv env(Settings{{"NCCL_DEBUG_TIMESTAMP_FORMAT", "a_b"}, {"NCCL_DEBUG_TIMESTAMP_LEVELS", ""}});
  EXPECT_EQ(readLogSettings(env).stampFormat, "a b");
  EXPECT_EQ(readLogSettings(env).stampLevels, 0U);
}

TEST(LogSettings, FileNeedsMoreThanVersion) {
  EXPECT_EQ(readLogSettings(MapEnv(Settings{{"NCCL_DEBUG", "VERSION"}, {"NCCL_DEBUG_FILE", "x"}})).filePath, "");
  EXPECT_EQ(expandFilePattern("%h-%p-%%-%q%", "n", 5), "n-5-%-%q%");
}

TEST(Log, AThreadMayKeepItsErrorsToItself) {
  test::expectLog("what the application reads");
  test::expectLog("an echo");
  fail(ncclSystemError, "what the application reads").ignore();
  {
    const OwnLastError own;
    EXPECT_STREQ(lastErrorText(), "");
    fail(ncclRemoteError, "an echo").ignore();
    EXPECT_STREQ(lastErrorText(), "an echo");
    std::thread([] { EXPECT_STREQ(lastErrorText(), "what the application reads"); }).join();
    { const OwnLastError within; }
    EXPECT_STREQ(lastErrorText(), "an echo");
  }
  EXPECT_STREQ(lastErrorText(), "what the application reads");
  {
    const OwnLastError own;
    restoreLastError("published after all");
  }
  EXPECT_STREQ(lastErrorText(), "published after all");
}

TEST(Log, WhatAThreadRecallsIsNotPublished) {
  restoreLastError("what the application reads");
  {
    const OwnLastError own;
    recallLastError("half of a reason");
    EXPECT_STREQ(lastErrorText(), "half of a reason");
    recallLastError("");
    EXPECT_STREQ(lastErrorText(), "half of a reason");
    std::thread([] { EXPECT_STREQ(lastErrorText(), "what the application reads"); }).join();
  }
  EXPECT_STREQ(lastErrorText(), "what the application reads");
  recallLastError("a thread that keeps nothing to itself");
  EXPECT_STREQ(lastErrorText(), "a thread that keeps nothing to itself");
}

TEST(Log, AThreadReadsItsOwnLastErrorBeforeTheProcesss) {
  test::allowLog("of the other thread");
  test::allowLog("of this thread");
  forgetThreadError();
  std::thread([] { fail(ncclSystemError, "of the other thread").ignore(); }).join();
  EXPECT_STREQ(lastErrorText(), "of the other thread") << "this thread has none";
  EXPECT_STREQ(threadErrorText(), "");
  fail(ncclSystemError, "of this thread").ignore();
  std::thread([] { fail(ncclSystemError, "of the other thread").ignore(); }).join();
  EXPECT_STREQ(lastErrorText(), "of this thread");
  EXPECT_STREQ(threadErrorText(), "of this thread");
  forgetThreadError();
  EXPECT_STREQ(lastErrorText(), "of the other thread");
}

TEST(Log, ATextThatWasAskedForLastsAndIsTheSameForWhoAsksAgain) {
  const char* const asked = lastingErrorText("asked for");
  EXPECT_STREQ(asked, "asked for");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(lastingErrorText("asked for"), asked);
  for (int i = 0; i < 15; ++i) EXPECT_STREQ(lastingErrorText(std::to_string(i)), std::to_string(i).c_str());
  EXPECT_STREQ(asked, "asked for");
  EXPECT_EQ(std::string(lastingErrorText(std::string(5000, 'x'))), std::string(1023, 'x'));
}

TEST(Log, WhoAsksForATextGetsItWhileOthersAskForTheirs) {
  const auto ask = [](const std::string& mine) {
    int others = 0;
    for (int i = 0; i < 100'000; ++i) others += lastingErrorText(mine) == mine ? 0 : 1;
    EXPECT_EQ(others, 0);
  };
  std::thread other([&] { ask("the other's"); });
  ask("mine");
  other.join();
}

TEST(Log, WhatMayFailWithoutHarmIsToldAtInfo) {
  test::expectLog("what the application reads");
  fail(ncclSystemError, "what the application reads").ignore();
  for (const char* level : {"WARN", "INFO"}) {
    const LogEnv env({{"NCCL_DEBUG", level}});
    const ErrorsAsInfo quiet;
    EXPECT_EQ(fail(ncclSystemError, "harmless at {}", level).code(), ncclSystemError);
    warn("of no matter at {}", level);
    EXPECT_EQ(lastErrorText(), std::string("of no matter at ") + level);
  }
  EXPECT_STREQ(lastErrorText(), "what the application reads");
  const std::string said = test::capturedText();
  EXPECT_EQ(said.find("at WARN"), std::string::npos) << said;
  EXPECT_NE(said.find("NCCL INFO harmless at INFO"), std::string::npos) << said;
  EXPECT_NE(said.find("NCCL INFO of no matter at INFO"), std::string::npos) << said;
}

}  // namespace
}  // namespace tutti
