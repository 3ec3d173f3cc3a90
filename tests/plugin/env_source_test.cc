// Env plugins: which one is loaded, when, and what becomes of its answers.
#include "plugin/env_source.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "nccl_env.h"
#include "plugin/plugin_fixture.h"
#include "plugin/plugin_log.h"
#include "plugin/test_env.h"
#include "support/log_capture.h"
#include "support/scoped_log.h"

static_assert(sizeof(ncclEnv_v1_t) == 32 && sizeof(ncclEnv_v2_t) == 32);
static_assert(offsetof(ncclEnv_v1_t, init) == 8 && offsetof(ncclEnv_v2_t, init) == 8);
static_assert(offsetof(ncclEnv_v1_t, finalize) == 16 && offsetof(ncclEnv_v2_t, finalize) == 16);
static_assert(offsetof(ncclEnv_v1_t, getEnv) == 24 && offsetof(ncclEnv_v2_t, getEnv) == 24);

namespace {

ncclResult_t start(std::uint8_t, std::uint8_t, std::uint8_t, const char*) {
  return ncclSuccess;
}
const char* answer(const char* name) {
  return name;
}

}  // namespace

// Part of this program, for STATIC_PLUGIN; without finalize.
extern "C" {
NCCL_PLUGIN_EXPORT ncclEnv_v1_t ncclEnvPlugin_v1 = {.name = "inProgram", .init = &start, .getEnv = &answer};
}

namespace tutti::test {
namespace {

std::string envPath(int version) {
  return pluginFolder() + "/libnccl-env-testv" + std::to_string(version) + ".so";
}

/// Null: it is not loaded.
const TestEnvCounts* envCounts(int version) {
  void* const library = ::dlopen(envPath(version).c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto* const function = reinterpret_cast<TestEnvCountsFunction*>(::dlsym(library, "testEnvCounts"));
  ::dlclose(library);
  return function();
}

bool wasLogged(const std::string& text) {
  return capturedText().find(text) != std::string::npos;
}

/// A source over an environment that names a plugin and has NCCL_ALGO=ring.
struct Source {
  MapEnv environment;
  plugin::EnvSource source{environment};
  explicit Source(const std::string& plugin)
      : environment({{"NCCL_ENV_PLUGIN", plugin}, {"NCCL_ALGO", "ring"}, {"NCCL_PROTO", "LL"}}) {}
};

TEST(EnvSource, FollowsTheRulesOfLoading) {
  const ScopedEnv answers("TEST_ENV_ANSWERS", "NCCL_ALGO=tree");
  const std::string tooLong(300, 'a');
  const struct {
    std::string value;
    const char* algo;
    const char* line;
    const char* warning;  // nullptr: none
  } rows[] = {
      {"", "ring", "ENV/Plugin: Could not find: libnccl-env.so", nullptr},
      {"none", "ring", "", nullptr},
      {"None", "ring", "", nullptr},
      {"testv1", "tree", "ENV/Plugin: Using testenv1 (v1)", nullptr},
      {"testv2", "tree", "ENV/Plugin: Using testenv2 (v2)", nullptr},
      {"libnccl-env-testv1.so", "tree", "Successfully loaded external env plugin ", nullptr},
      {envPath(2), "tree", "Successfully loaded external env plugin ", nullptr},
      {"STATIC_PLUGIN", "NCCL_ALGO", "ENV/Plugin: Using inProgram (v1)", nullptr},
      {"static_plugin", "NCCL_ALGO", "Successfully loaded external env plugin STATIC_PLUGIN", nullptr},
      {"testv1.so", "ring", "Could not find: testv1.so libnccl-env-testv1.so.so", "not found: testv1.so libnccl-env-"},
      {"nowhere", "ring", "ENV/Plugin: Could not find: nowhere libnccl-env-nowhere.so",
       "NCCL_ENV_PLUGIN=nowhere cannot"},
      {" none", "ring", "Could not find:  none", "NCCL_ENV_PLUGIN= none cannot be used: not found"},
      {"testv1,testv2", "ring", "Could not find: testv1,testv2", "NCCL_ENV_PLUGIN=testv1,testv2 cannot be used"},
      {"/nowhere/x.so", "ring", "ENV/Plugin: ", "NCCL_ENV_PLUGIN=/nowhere/x.so cannot be used"},
      {tooLong, "ring", "ncclOsDlopen(", "cannot be used"},
      {pluginFolder() + "/libno-net.so", "ring", "libno-net.so is unsupported", "exports no env table"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE("NCCL_ENV_PLUGIN=" + row.value);
    const ScopedLog log("INFO");
    if (row.warning != nullptr) expectLog(row.warning);
    Source env(row.value);
    ASSERT_TRUE(env.source.start().ok());
    ASSERT_TRUE(env.source.start().ok());  // and tells nothing twice
    EXPECT_EQ(env.source.get("NCCL_ALGO"), row.algo);
    EXPECT_TRUE(wasLogged(row.line)) << capturedText();
    env.source.finalize();
    EXPECT_EQ(env.source.get("NCCL_ALGO"), "ring");
  }
}

TEST(EnvSource, CutsANameThatIsTooLong) {
  const ScopedLog log("INFO");
  Source env(std::string(300, 'a'));
  expectLog("cannot be used");
  ASSERT_TRUE(env.source.start().ok());
  EXPECT_TRUE(wasLogged("ncclOsDlopen(" + std::string(254, 'a') + ") failed"));
}

TEST(EnvSource, AsksTheEnvironmentBeforeItIsStarted) {
  const Source env(envPath(2));
  EXPECT_EQ(env.source.get("NCCL_ALGO"), "ring");
  EXPECT_EQ(envCounts(2), nullptr) << "loaded without a start";
}

TEST(EnvSource, TheEnvironmentDoesNotFillInForThePlugin) {
  Source env(envPath(1));
  ASSERT_TRUE(env.source.start().ok());
  EXPECT_EQ(env.source.get("NCCL_PROTO"), std::nullopt);  // nor does the test plugin find it in the process
  EXPECT_EQ(env.source.names().size(), 3U);
  env.source.finalize();
  EXPECT_EQ(env.source.get("NCCL_PROTO"), "LL");
}

TEST(EnvSource, InitialisesAndFinalizesOnce) {
  for (const int version : {1, 2}) {
    void* const kept = ::dlopen(envPath(version).c_str(), RTLD_NOW);
    ASSERT_NE(kept, nullptr);
    {
      Source env(envPath(version));
      std::vector<std::thread> threads;
      for (int i = 0; i < 8; ++i) threads.emplace_back([&] { EXPECT_TRUE(env.source.start().ok()); });
      for (std::thread& thread : threads) thread.join();
      env.source.finalize();
      env.source.finalize();
    }
    EXPECT_EQ(envCounts(version)->inits, 1);
    EXPECT_EQ(envCounts(version)->finalizes, 1);
    ::dlclose(kept);
  }
}

TEST(EnvSource, SaysThatAPluginGoes) {
  const ScopedLog log("INFO");
  Source env(envPath(1));
  ASSERT_TRUE(env.source.start().ok());
  EXPECT_FALSE(wasLogged("Closing env plugin"));
  env.source.finalize();
  EXPECT_TRUE(wasLogged("ENV/Plugin: Closing env plugin testenv1"));
  EXPECT_EQ(envCounts(1), nullptr) << "still loaded";
}

TEST(EnvSource, AFailingInitFailsEveryCall) {
  const struct {
    int version;
    const char* fault;
    const char* said;
  } rows[] = {
      {1, "init", "init failed with ncclSystemError, and the plugin said nothing"},
      {2, "init", "init failed with ncclSystemError; it said: test env: no settings today"},
      {2, "silent", "init failed with ncclSystemError, and the plugin said nothing"},
      {2, "no-getenv", "its table has no getEnv"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.fault);
    const ScopedEnv fault("TEST_ENV_FAULT", row.fault);
    allowLog("test env: no settings today");
    allowLog(row.said);
    Source env(envPath(row.version));
    const Status first = env.source.start();
    EXPECT_FALSE(first.ok());
    EXPECT_NE(std::string(lastErrorText()).find(row.said), std::string::npos) << lastErrorText();
    EXPECT_NE(std::string(lastErrorText()).find("NCCL_ENV_PLUGIN=none goes on without it"), std::string::npos);
    forgetThreadError();
    EXPECT_EQ(env.source.start().code(), first.code());
    EXPECT_NE(std::string(lastErrorText()).find(row.said), std::string::npos) << lastErrorText();
    EXPECT_EQ(env.source.get("NCCL_ALGO"), "ring");
    env.source.finalize();
    EXPECT_EQ(envCounts(row.version), nullptr) << "a plugin that failed stays loaded";
  }
}

/// The oldest version has no logger: what a thread of some other plugin has said meanwhile is not its excuse.
TEST(EnvSource, AFailureIsNotExplainedByWhatOthersSaid) {
  const ScopedEnv fault("TEST_ENV_FAULT", "init");
  allowLog("the network is gone");
  allowLog("init failed with ncclSystemError, and the plugin said nothing");
  std::thread([] { plugin::pluginLog(NCCL_LOG_WARN, NCCL_NET, "net.c", 1, "the network is gone"); }).join();
  Source env(envPath(1));
  EXPECT_FALSE(env.source.start().ok());
  EXPECT_NE(std::string(lastErrorText()).find("and the plugin said nothing"), std::string::npos) << lastErrorText();
  env.source.finalize();
  EXPECT_EQ(plugin::takePluginWarning(), "the network is gone") << "it is still there for whom it explains";
}

TEST(EnvSource, AFailingFinalizeIsAWarning) {
  const ScopedEnv fault("TEST_ENV_FAULT", "finalize");
  expectLog("finalize failed with ncclSystemError");
  Source env(envPath(2));
  ASSERT_TRUE(env.source.start().ok());
  env.source.finalize();
}

TEST(EnvSource, TakesAnswersOverBeforeTheNextOne) {
  const std::string longText(100, 'x');
  const ScopedEnv answers("TEST_ENV_ANSWERS", "NCCL_ALGO=" + longText);
  void* const kept = ::dlopen(envPath(2).c_str(), RTLD_NOW);
  ASSERT_NE(kept, nullptr);
  Source env(envPath(2));
  ASSERT_TRUE(env.source.start().ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 500; ++n) EXPECT_EQ(env.source.get("NCCL_ALGO"), longText);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(envCounts(2)->questions, 2000);
  EXPECT_EQ(envCounts(2)->overlaps, 0);
  env.source.finalize();
  ::dlclose(kept);
}

TEST(EnvSource, ThreadsMayAskWhileThePluginGoes) {
  const ScopedEnv answers("TEST_ENV_ANSWERS", "NCCL_ALGO=tree");
  Source env(envPath(1));
  ASSERT_TRUE(env.source.start().ok());
  std::atomic<bool> stop = false;
  std::thread asking([&] {
    bool gone = false;
    while (!stop) {
      const auto value = env.source.get("NCCL_ALGO");
      EXPECT_TRUE(value == "ring" || (value == "tree" && !gone)) << value.value_or("nothing");
      gone = value == "ring";
    }
  });
  env.source.finalize();
  EXPECT_EQ(env.source.get("NCCL_ALGO"), "ring");
  stop = true;
  asking.join();
}

TEST(EnvSource, APluginMayLogFromInsideItsAnswers) {
  // The log reads NCCL_DEBUG again, asks the plugin, and the plugin logs. That it does so before its answer is known
  // must not keep the log from obeying the answer.
  const ScopedLog log("INFO");
  const ScopedEnv fault("TEST_ENV_FAULT", "logs");
  Source env(envPath(2));
  ASSERT_TRUE(env.source.start().ok());
  setSettingsSource(&env.source);
  resetLog();
  info(kEnv, "the first line afterwards");
  env.source.get("NCCL_ALGO");
  setSettingsSource(nullptr);
  env.source.finalize();
  EXPECT_TRUE(wasLogged("the first line afterwards"));
  EXPECT_TRUE(wasLogged("test env: asked for NCCL_ALGO"));
  EXPECT_FALSE(wasLogged("test env: asked for NCCL_DEBUG"));
}

}  // namespace
}  // namespace tutti::test
