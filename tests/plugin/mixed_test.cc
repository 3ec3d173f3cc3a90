// One library that is a plugin of every kind: each kind finds its own table there.
#include <gtest/gtest.h>

#include "plugin/env_source.h"
#include "plugin/network/registry.h"
#include "plugin/plugin_fixture.h"
#include "plugin/single.h"
#include "support/log_capture.h"
#include "support/scoped_log.h"

namespace tutti::test {
namespace {

std::string mixedPath() {
  return pluginFolder() + "/libnccl-net-mixed.so";
}

/// A tuner or profiler as far as this test goes.
struct Found {
  std::string is;
  const std::string& name() const { return is; }
};

template <const char* Symbol>
std::unique_ptr<Found> find(const DlLibrary& library, const std::string&) {
  const auto* table = static_cast<const char* const*>(library.symbol(Symbol));
  return table == nullptr ? nullptr : std::make_unique<Found>(*table);
}
constexpr char kTuner[] = "ncclTunerPlugin_v4";
constexpr char kProfiler[] = "ncclProfiler_v3";

TEST(MixedLibrary, IsTakenForEachKind) {
  const ScopedLog log("INFO");
  Params::Misc settings;
  settings.netPlugin = mixedPath();
  plugin::NetRegistry registry(settings, true, {});
  auto lease = registry.assign("", {});
  ASSERT_TRUE(lease.ok()) << lastErrorText();
  EXPECT_EQ(lease.value()->net().name(), "testv12");
  EXPECT_NE(lease.value()->collNet(), nullptr);

  // Their own libraries are nowhere: the network's is both.
  plugin::SinglePlugin<Found> tuners(plugin::kTunerPlugins, &find<kTuner>);
  plugin::SinglePlugin<Found> profilers(plugin::kProfilerPlugins, &find<kProfiler>);
  const auto tuner = tuners.take("");
  ASSERT_NE(tuner, nullptr);
  EXPECT_EQ(tuner->is, "mixed tuner");
  EXPECT_EQ(tuner, tuners.take(""));
  const auto profiler = profilers.take("");
  ASSERT_NE(profiler, nullptr);
  EXPECT_EQ(profiler->is, "mixed profiler");
  EXPECT_EQ(plugin::SinglePlugin<Found>(plugin::kTunerPlugins, &find<kTuner>).take("none"), nullptr);
}

/// Of several libraries of networks the one that was opened last is looked into, whichever is chosen.
TEST(MixedLibrary, IsLookedIntoWhereItIsTheLastThatWasOpened) {
  const struct {
    std::string list;
    const char* wanted;
    bool found;
  } rows[] = {{"testv8," + mixedPath(), "testv12", true},
              {mixedPath() + ",testv8", "testv08", false},
              {mixedPath() + ",testv8", "testv12", true},  // the other one is not opened any more
              {mixedPath() + ",nowhere", "Socket", true}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.list + " wanted " + row.wanted);
    Params::Misc settings;
    settings.netPlugin = row.list;
    plugin::NetRegistry registry(settings, false, {});
    const auto choice = registry.choose(row.wanted, {});
    EXPECT_EQ(choice.lease != nullptr, std::string(row.wanted) != "Socket");
    plugin::SinglePlugin<Found> tuners(plugin::kTunerPlugins, &find<kTuner>);
    EXPECT_EQ(tuners.take("") != nullptr, row.found);
    plugin::SinglePlugin<Found> profilers(plugin::kProfilerPlugins, &find<kProfiler>);
    EXPECT_EQ(profilers.take("") != nullptr, row.found);
  }
}

TEST(MixedLibrary, IsAnEnvPluginWhereThatIsAskedFor) {
  const ScopedEnv answers("TEST_ENV_ANSWERS", "NCCL_ALGO=tree");
  const MapEnv environment(Settings{{"NCCL_ENV_PLUGIN", mixedPath()}, {"NCCL_ALGO", "ring"}});
  plugin::EnvSource source(environment);
  ASSERT_TRUE(source.start().ok());
  EXPECT_EQ(source.get("NCCL_ALGO"), "tree");
  source.finalize();
}

TEST(MixedLibrary, OfTheNetworkIsNoEnvPluginUnasked) {
  Params::Misc settings;
  settings.netPlugin = mixedPath();
  plugin::NetRegistry registry(settings, true, {});
  auto lease = registry.assign("", {});
  ASSERT_TRUE(lease.ok()) << lastErrorText();
  const ScopedEnv answers("TEST_ENV_ANSWERS", "NCCL_ALGO=tree");
  const MapEnv environment(Settings{{"NCCL_ALGO", "ring"}});
  plugin::EnvSource source(environment);
  ASSERT_TRUE(source.start().ok());
  EXPECT_EQ(source.get("NCCL_ALGO"), "ring");
}

}  // namespace
}  // namespace tutti::test
