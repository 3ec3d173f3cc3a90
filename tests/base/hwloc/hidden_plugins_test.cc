#include "base/hwloc/hidden_plugins.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/hwloc/topology.h"

namespace tutti {
namespace {

/// The folder with the plugin of marked_plugin.c, as the application's setting.
constexpr const char* kFolder = MARKED_PLUGINS;

std::string valueOf(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? "(unset)" : value;
}

int count(const std::string& name) {
  int found = 0;
  for (char** entry = environ; *entry != nullptr; ++entry)
    found += std::string(*entry).rfind(name + "=", 0) == 0 ? 1 : 0;
  return found;
}

class HiddenPluginsTest : public testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("TUTTI_TEST_PLUGIN_OPENED");
    ::setenv("HWLOC_PLUGINS_PATH", kFolder, 1);
  }
  void TearDown() override { ::unsetenv("HWLOC_PLUGINS_PATH"); }
};

TEST_F(HiddenPluginsTest, HideTheApplicationsFolderWhileTheyLiveAndNoLonger) {
  char** const before = environ;
  {
    const HiddenPlugins hidden;
    EXPECT_EQ(valueOf("HWLOC_PLUGINS_PATH"), "/dev/null/none");
    EXPECT_EQ(valueOf("PATH"), valueOf("PATH"));
    EXPECT_NE(valueOf("PATH"), "(unset)") << "all else is there";
  }
  EXPECT_EQ(environ, before) << "the very same";
  EXPECT_EQ(valueOf("HWLOC_PLUGINS_PATH"), kFolder);
}

TEST_F(HiddenPluginsTest, KeepWhatIsSetMeanwhileAndTakeTheirOwnBack) {
  {
    const HiddenPlugins hidden;
    ::setenv("TUTTI_TEST_SET_MEANWHILE", "yes", 1);
  }
  EXPECT_EQ(valueOf("TUTTI_TEST_SET_MEANWHILE"), "yes");
  EXPECT_EQ(valueOf("HWLOC_PLUGINS_PATH"), kFolder);
  EXPECT_EQ(count("HWLOC_PLUGINS_PATH"), 1);
  ::unsetenv("TUTTI_TEST_SET_MEANWHILE");
}

TEST_F(HiddenPluginsTest, KeepWhatIsChangedOrTakenAwayMeanwhile) {
  ::setenv("TUTTI_TEST_CHANGED", "before", 1);
  ::setenv("TUTTI_TEST_TAKEN_AWAY", "before", 1);
  {
    const HiddenPlugins hidden;
    ::setenv("TUTTI_TEST_CHANGED", "after", 1);
    ::unsetenv("TUTTI_TEST_TAKEN_AWAY");
  }
  EXPECT_EQ(valueOf("TUTTI_TEST_CHANGED"), "after");
  EXPECT_EQ(valueOf("TUTTI_TEST_TAKEN_AWAY"), "(unset)");
  EXPECT_EQ(valueOf("HWLOC_PLUGINS_PATH"), kFolder);
  { const HiddenPlugins again; }
  EXPECT_EQ(valueOf("TUTTI_TEST_CHANGED"), "after");
  EXPECT_EQ(count("HWLOC_PLUGINS_PATH"), 1);
  ::unsetenv("TUTTI_TEST_CHANGED");
}

TEST_F(HiddenPluginsTest, LetOtherThreadsReadTheEnvironment) {
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  const std::string path = valueOf("PATH");
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!done) wrong += valueOf("PATH") == path ? 0 : 1;
    });
  }
  for (int i = 0; i < 20000; ++i) const HiddenPlugins hidden;
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(HiddenPluginsTest, KeepPluginsOutOfThisProcess) {
  const HwlocCalls* const calls = Hwloc::instance().calls();
  if (calls == nullptr) GTEST_SKIP() << Hwloc::instance().text();
  std::string why;
  EXPECT_TRUE(HwlocTopology::read(HwlocDetail::Devices, why)) << why;
  EXPECT_EQ(valueOf("TUTTI_TEST_PLUGIN_OPENED"), "(unset)");
  hwloc_topology_t theirs = nullptr;
  ASSERT_EQ(calls->topologyInit(&theirs), 0);
  calls->topologyDestroy(theirs);
  if (valueOf("TUTTI_TEST_PLUGIN_OPENED") == "(unset)") GTEST_SKIP() << "this hwloc is built without plugins";
  EXPECT_EQ(valueOf("TUTTI_TEST_PLUGIN_OPENED"), "1") << "an application's own topology opens them afterwards";
}

}  // namespace
}  // namespace tutti
