// What plugins say.
#include "plugin/plugin_log.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "plugin/plugin_fixture.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

bool logged(const std::string& text) {
  return capturedText().find(text) != std::string::npos;
}

TEST(PluginLog, PrintsWhatLevelAndSubsystemsSelect) {
  const ScopedLog log("INFO", "INIT,NET");
  plugin::pluginLog(NCCL_LOG_INFO, NCCL_NET, "file.c", 3, "one %d", 1);
  plugin::pluginLog(NCCL_LOG_INFO, NCCL_INIT | NCCL_P2P, "file.c", 3, "two %s", "2");
  plugin::pluginLog(NCCL_LOG_INFO, NCCL_P2P, "file.c", 3, "three");
  plugin::pluginLog(NCCL_LOG_TRACE, NCCL_NET, "function", 3, "four");
  plugin::pluginLog(NCCL_LOG_NONE, NCCL_NET, "file.c", 3, "five");
  EXPECT_TRUE(logged("NCCL INFO one 1"));
  EXPECT_TRUE(logged("NCCL INFO two 2"));
  EXPECT_FALSE(logged("three"));
  EXPECT_FALSE(logged("four"));
  EXPECT_FALSE(logged("five"));
}

TEST(PluginLog, KeepsWarningsAsLastErrorAndShowsWhere) {
  const ScopedLog log("WARN");
  expectLog("their/file.c:33 NCCL WARN it broke: 7");
  plugin::pluginLog(NCCL_LOG_WARN, NCCL_NET, "their/file.c", 33, "it broke: %d", 7);
  EXPECT_STREQ(lastErrorText(), "it broke: 7");
  EXPECT_EQ(plugin::takePluginWarning(), "it broke: 7");
}

TEST(PluginLog, KeepsWarningsThatAreNotPrinted) {
  const ScopedLog log("WARN", "INIT");
  plugin::pluginLog(NCCL_LOG_WARN, NCCL_NET, "file.c", 33, "unseen");
  EXPECT_STREQ(lastErrorText(), "unseen");
  EXPECT_EQ(plugin::takePluginWarning(), "unseen");
}

TEST(PluginLog, NamesFunctionsInTraces) {
  const ScopedLog log("TRACE");
  plugin::pluginLog(NCCL_LOG_TRACE, NCCL_NET, "theirFunction", 5, "traced");
  EXPECT_TRUE(logged("theirFunction:5 NCCL TRACE traced"));
}

TEST(PluginLog, TakesOddArguments) {
  const ScopedLog log("INFO");
  plugin::pluginLog(NCCL_LOG_INFO, NCCL_NET, nullptr, -1, "no %s", "file");
  plugin::pluginLog(NCCL_LOG_INFO, NCCL_NET, "f", 1, nullptr);
  plugin::pluginLog(static_cast<ncclDebugLogLevel>(7), NCCL_NET, "f", 1, "no level");
  plugin::pluginLog(NCCL_LOG_INFO, NCCL_NET, "f", 1, "%s", std::string(5000, 'x').c_str());
  EXPECT_TRUE(logged("no file"));
  EXPECT_FALSE(logged("no level"));
  EXPECT_TRUE(logged(std::string(800, 'x')));
}

TEST(PluginLog, QuotesTheWarningOfTheThreadThatFailed) {
  allowLog("warned");
  plugin::forgetPluginWarning();
  static_cast<void>(plugin::takePluginWarning());
  plugin::pluginLog(NCCL_LOG_WARN, NCCL_NET, "f", 1, "warned here");
  std::thread([] { plugin::pluginLog(NCCL_LOG_WARN, NCCL_NET, "f", 1, "warned elsewhere"); }).join();
  EXPECT_EQ(plugin::takePluginWarning(), "warned here");
  EXPECT_EQ(plugin::takePluginWarning(), "");
  std::thread([] { plugin::pluginLog(NCCL_LOG_WARN, NCCL_NET, "f", 1, "warned in a helper"); }).join();
  plugin::forgetPluginWarning();
  EXPECT_EQ(plugin::takePluginWarning(), "warned in a helper");
}

}  // namespace
}  // namespace tutti::test
