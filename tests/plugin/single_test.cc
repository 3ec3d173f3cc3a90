// Which library the one plugin of a kind comes from, and how long it stays; with tuners as the kind, and where it comes
// from with profilers as well.
#include "plugin/single.h"

#include <gtest/gtest.h>

#include <string>

#include "nccl_net_types.h"
#include "nccl_profiler.h"
#include "plugin/profiler_versions.h"
#include "plugin/tuner.h"
#include "plugin/tuner_fixture.h"
#include "support/log_capture.h"
#include "support/scoped_log.h"

// A profiler that is part of this program, for STATIC_PLUGIN; the tuner is tuner_test.cc's.
extern "C" {
NCCL_PLUGIN_EXPORT ncclProfiler_v2_t ncclProfiler_v2 = {.name = "TestProfiler",
                                                        .init = [](void**, int*) { return ncclSuccess; }};
}

namespace tutti::test {
namespace {

using Tuners = plugin::SinglePlugin<plugin::TunerPlugin>;

std::string folder() {
  const std::string path = tunerPath(2);
  return path.substr(0, path.rfind('/'));
}

/// The network's library, for one test.
class NetLibrary {
 public:
  explicit NetLibrary(const std::string& file) { plugin::rememberNetLibrary(file); }
  NetLibrary(const NetLibrary&) = delete;
  ~NetLibrary() { plugin::rememberNetLibrary(""); }
};

TEST(SinglePlugin, FollowsTheRulesOfLoading) {
  const std::string lib3 = tunerPath(3);
  const std::string lib5 = tunerPath(5);
  const std::string none = folder() + "/libno-net.so";
  const std::string tooLong(300, 'a');
  const std::string cut = "ncclOsDlopen(" + tooLong.substr(0, 254) + ") failed: ";
  const struct {
    std::string value;
    std::string net;   // library of the network; "": none
    const char* name;  // of the tuner; "": there is none
    const char* line;
    bool warns;
  } rows[] = {
      {"", "", "", "TUNER/Plugin: Could not find: libnccl-tuner.so", false},
      {"none", lib5, "", "", false},
      {"NONE", lib5, "", "", false},
      {"testv3", "", "tunerv3", "TUNER/Plugin: Using tunerv3 (v3)", false},
      {"libnccl-tuner-testv3.so", "", "tunerv3", "Successfully loaded external tuner plugin ", false},
      {lib3, lib5, "tunerv3", "ncclOsDlsym(ncclTunerPlugin_v5) failed: ", false},
      {"static_plugin", lib3, "inProgram", "TUNER/Plugin: Using inProgram (v5)", false},
      {"", lib5, "tunerv5", "TUNER/Plugin: Using tunerv5 (v5)", false},
      {"nowhere", lib5, "tunerv5", "TUNER/Plugin: Could not find: nowhere libnccl-tuner-nowhere.so", false},
      {"", "STATIC_PLUGIN", "inProgram", "TUNER/Plugin: Using inProgram (v5)", false},
      {"nowhere", "", "", "NCCL_TUNER_PLUGIN=nowhere cannot be used: not found: nowhere libnccl-tuner-nowhere.so. The",
       true},
      {"nowhere", none, "", "NCCL_TUNER_PLUGIN=nowhere cannot be used", true},
      {"", none, "", "", false},
      {none, lib5, "", "libno-net.so is unsupported", true},
      {"testv3,testv5", "", "", "TUNER/Plugin: Could not find: testv3,testv5", true},
      {" none", "", "", "TUNER/Plugin: Could not find:  none libnccl-tuner- none.so", true},
      {"testv3.so", "", "", "TUNER/Plugin: Could not find: testv3.so libnccl-tuner-testv3.so.so", true},
      {"/nowhere/x.so", lib5, "tunerv5", "TUNER/Plugin: Could not find: /nowhere/x.so", false},
      {tooLong, lib5, "tunerv5", cut.c_str(), false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE("\"" + row.value + "\" beside \"" + row.net + "\"");
    const ScopedLog log("INFO");
    const std::size_t before = capturedText().size();
    const auto wasLogged = [before](const std::string& text) {
      return capturedText().find(text, before) != std::string::npos;
    };
    const NetLibrary net(row.net);
    if (row.warns) allowLog("The process goes on without it");
    Tuners tuners(plugin::kTunerPlugins, plugin::findTuner);
    {
      const auto tuner = tuners.take(row.value);
      EXPECT_EQ(tuner == nullptr ? "" : std::string(tuner->name()), row.name);
    }
    EXPECT_TRUE(wasLogged(row.line)) << capturedText();
    EXPECT_EQ(wasLogged("The process goes on without it"), row.warns);
    const bool own = row.net.empty() && *row.name != '\0';
    if (!row.net.empty() && row.value.find("testv3") == std::string::npos) {
      EXPECT_EQ(wasLogged("Successfully loaded"), row.value == "static_plugin") << "the network's is not announced";
    }
    EXPECT_EQ(own, own && wasLogged(std::string("TUNER/Plugin: Closing tuner: '") + row.name + "'"));
  }
}

using Profilers = plugin::SinglePlugin<plugin::ProfilerPlugin>;

TEST(SinglePlugin, FollowsThemForProfilersAsWell) {
  const std::string lib3 = folder() + "/libnccl-profiler-testv3.so";
  const std::string lib5 = folder() + "/libnccl-profiler-testv5.so";
  const std::string none = folder() + "/libno-net.so";
  const std::string broken = folder() + "/libnccl-net-lacking.so";  // cannot be opened
  const std::string tooLong(300, 'a');
  const std::string cut = "ncclOsDlopen(" + tooLong.substr(0, 254) + ") failed: ";
  const std::string words = "PROFILER/Plugin: " + broken + ": " + broken + ": undefined symbol";
  const struct {
    std::string value;
    std::string net;  // library of the network
    int version;      // of the profiler; 0: there is none
    const char* line;
    bool warns;
  } rows[] = {
      {"", "", 0, "PROFILER/Plugin: Could not find: libnccl-profiler.so\n", false},
      {"none", lib5, 0, "", false},
      {"NONE", lib5, 0, "", false},
      {" none", "", 0, "PROFILER/Plugin: Could not find:  none libnccl-profiler- none.so\n", true},
      {"STATIC_PLUGIN", lib3, 2, "Successfully loaded external profiler plugin STATIC_PLUGIN\n", false},
      {"static_plugin", lib3, 2, "Successfully loaded external profiler plugin STATIC_PLUGIN\n", false},
      {"", "STATIC_PLUGIN", 2, "", false},
      {"testv3", "", 3, "Successfully loaded external profiler plugin ", false},
      {"libnccl-profiler-testv3.so", "", 3, "Successfully loaded external profiler plugin ", false},
      {"libnowhere.so", "", 0, "PROFILER/Plugin: Could not find: libnowhere.so\n", true},
      {"testv3.so", "", 0, "PROFILER/Plugin: Could not find: testv3.so libnccl-profiler-testv3.so.so\n", true},
      {"testv3,testv5", "", 0, "Could not find: testv3,testv5 libnccl-profiler-testv3,testv5.so\n", true},
      {lib3, lib5, 3, "ncclOsDlsym(ncclProfiler_v5) failed: ", false},
      {"", lib5, 5, "", false},
      {"nowhere", lib5, 5, "PROFILER/Plugin: Could not find: nowhere libnccl-profiler-nowhere.so\n", false},
      {"/nowhere/x.so", lib5, 5, "PROFILER/Plugin: Could not find: /nowhere/x.so\n", false},
      {tooLong, lib5, 5, cut.c_str(), false},
      {broken, lib5, 5, words.c_str(), false},
      {broken, "", 0, words.c_str(), true},
      {"nowhere", "", 0,
       "NCCL_PROFILER_PLUGIN=nowhere cannot be used: not found: nowhere libnccl-profiler-nowhere.so. The", true},
      {"nowhere", none, 0, "NCCL_PROFILER_PLUGIN=nowhere cannot be used", true},
      {"", none, 0, "", false},
      {none, lib5, 0, "libno-net.so is unsupported", true},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE("\"" + row.value + "\" beside \"" + row.net + "\"");
    const ScopedLog log("INFO");
    const std::size_t before = capturedText().size();
    const auto wasLogged = [before](const std::string& text) {
      return capturedText().find(text, before) != std::string::npos;
    };
    const NetLibrary net(row.net);
    if (row.warns) allowLog("The process goes on without it");
    Profilers profilers(plugin::kProfilerPlugins, plugin::findProfiler);
    const bool found = profilers.take(row.value) != nullptr;
    const std::string version = "(v" + std::to_string(row.version) + ")\n";
    EXPECT_EQ(found, row.version != 0);
    EXPECT_EQ(found, wasLogged("PROFILER/Plugin: Loaded TestProfiler " + version));
    EXPECT_EQ(found, wasLogged("PROFILER/Plugin: Closing profiler plugin TestProfiler"));
    EXPECT_TRUE(wasLogged(row.line)) << capturedText();
    EXPECT_EQ(wasLogged("The process goes on without it"), row.warns);
    const bool ofNet = row.version == 5 || row.net == "STATIC_PLUGIN";
    EXPECT_EQ(wasLogged("Successfully loaded"), found && !ofNet) << "the network's is not announced";
  }
}

TEST(SinglePlugin, IsOneForAllAndGoesWithTheLast) {
  Tuners tuners(plugin::kTunerPlugins, plugin::findTuner);
  EXPECT_FALSE(tunerIsLoaded(4));
  auto first = tuners.take("testv4");
  ASSERT_NE(first, nullptr);
  auto second = tuners.take("testv4");
  EXPECT_EQ(first, second);
  first.reset();
  EXPECT_TRUE(tunerIsLoaded(4));
  second.reset();
  EXPECT_FALSE(tunerIsLoaded(4));
  EXPECT_NE(tuners.take("testv4"), nullptr) << "and may come back";
  EXPECT_FALSE(tunerIsLoaded(4));
}

TEST(SinglePlugin, IsOneProfilerForAllThatGoesWithTheLastAndComesBack) {
  Profilers profilers(plugin::kProfilerPlugins, plugin::findProfiler);
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(profilers.current(), nullptr);
    auto first = profilers.take("testv4");
    ASSERT_NE(first, nullptr);
    auto second = profilers.take("testv4");
    EXPECT_EQ(first, second);
    first.reset();
    EXPECT_EQ(profilers.current(), second);
    second.reset();
  }
}

TEST(SinglePlugin, DoesNotTryAgainWhatCouldNotBeLoaded) {
  allowLog("The process goes on without it");
  Profilers profilers(plugin::kProfilerPlugins, plugin::findProfiler);
  EXPECT_EQ(profilers.take("nowhere"), nullptr);
  EXPECT_EQ(profilers.take("testv4"), nullptr);
  const NetLibrary net(folder() + "/libnccl-profiler-testv4.so");
  EXPECT_EQ(profilers.take(""), nullptr);
  Tuners tuners(plugin::kTunerPlugins, plugin::findTuner);
  EXPECT_EQ(tuners.take("nowhere"), nullptr);
  EXPECT_EQ(tuners.take("testv4"), nullptr);
  EXPECT_FALSE(tunerIsLoaded(4));
}

}  // namespace
}  // namespace tutti::test
