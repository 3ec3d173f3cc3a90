// Which network a communicator gets, and what becomes of it.
#include "plugin/network/registry.h"

#include <gtest/gtest.h>

#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nccl_net.h"
#include "plugin/network/idle_net.h"
#include "plugin/network/registry_world.h"
#include "plugin/plugin_fixture.h"
#include "support/log_capture.h"

namespace {

ncclResult_t refuseToStart(ncclDebugLogger_t) {
  return ncclSystemError;
}

}  // namespace

// Plugins that are part of this program, for STATIC_PLUGIN: the newer one is the one that counts.
extern "C" {
NCCL_PLUGIN_EXPORT ncclNet_v9_t ncclNetPlugin_v9 = {.name = "inProgram9", .init = &refuseToStart};
NCCL_PLUGIN_EXPORT ncclNet_v6_t ncclNetPlugin_v6 = {.name = "inProgram6", .init = &refuseToStart};
NCCL_PLUGIN_EXPORT ncclCollNet_v7_t ncclCollNetPlugin_v7 = {.name = "inProgram7", .init = &refuseToStart};
}

namespace tutti::test {
namespace {

/// Has no memory left when the first network that it opens is asked for its devices.
class ShortSource final : public plugin::NetSource {
 public:
  std::string_view name() const override { return "Short"; }
  Result<std::unique_ptr<plugin::Net>> open(const plugin::NetOpening&) override {
    return std::unique_ptr<plugin::Net>(std::make_unique<ShortNet>(std::exchange(first_, false)));
  }

 private:
  class ShortNet final : public IdleNet {
   public:
    explicit ShortNet(bool throws) : throws_(throws) {}
    Result<int> devices() override {
      if (throws_) throw std::bad_alloc();
      return 1;
    }

   private:
    bool throws_;
  };
  bool first_ = true;
};

bool wasLogged(const std::string& text) {
  return capturedText().find(text) != std::string::npos;
}

TEST(NetRegistry, TheNewestNetAndTheNewestCollNetAreFoundEachOnItsOwn) {
  const DlLibrary program = DlLibrary::openProgram();
  const auto net = plugin::findNet(program, "this");
  ASSERT_NE(net, nullptr);
  EXPECT_EQ(net->version(), 9);
  EXPECT_EQ(net->name(), "inProgram9");
  const auto collNet = plugin::findCollNet(program, "this");
  ASSERT_NE(collNet, nullptr);
  EXPECT_EQ(collNet->version(), 7);
  EXPECT_EQ(collNet->name(), "inProgram7");
}

TEST(NetRegistry, CanBeAskedAgainAfterANetworkRanOutOfMemory) {
  std::vector<std::unique_ptr<plugin::NetSource>> builtIn;
  builtIn.push_back(std::make_unique<ShortSource>());
  plugin::NetRegistry registry(Params::Misc{}, false, std::move(builtIn));
  EXPECT_THROW(registry.choose("", {}), std::bad_alloc);
  EXPECT_NE(registry.choose("", {}).lease, nullptr);
}

TEST(NetRegistry, WarnsOnceOfALibraryThatTheUserHasNamed) {
  World world("nowhere,testv8," + pluginFolder() + "/libno-net.so", 1, false, true);
  expectLog("NCCL_NET_PLUGIN names nowhere, which cannot be used: not found: nowhere libnccl-net-nowhere.so");
  EXPECT_EQ(world.choice(), "testv08");
  EXPECT_EQ(world.choice(), "testv08");
  World useless(pluginFolder() + "/libno-net.so", 1, false, true);
  expectLog("libno-net.so exports no ncclNetPlugin_v6 to _v12. The process goes on with the other networks");
  EXPECT_EQ(useless.choice(), "Socket");
  EXPECT_EQ(useless.choice(), "Socket");
}

TEST(NetRegistry, FollowsTheRulesOfLoading) {
  const std::string path8 = pluginPath(8);
  const struct {
    std::string list;
    const char* wanted;
    const char* fault;  // of version 8
    const char* chosen;
    const char* line;
  } rows[] = {
      {"", "", "", "Socket", "Assigned NET plugin Socket to comm"},
      {"none", "", "", "Socket", "Initialized NET plugin Socket"},
      {"NONE", "", "", "Socket", "Initialized NET plugin Socket"},
      {Params::Misc{}.netPlugin, "", "", "Socket", "NET/Plugin: Could not find: libnccl-net.so"},
      {"none,testv8", "", "", "testv08", "NET/Plugin: Could not find: none libnccl-net-none.so"},
      {",,testv8,", "", "", "testv08", "Assigned NET plugin testv08 to comm"},
      {"testv8.so", "", "", "Socket", "NET/Plugin: Could not find: testv8.so libnccl-net-testv8.so.so"},
      {"nowhere", "", "", "Socket", "NET/Plugin: Could not find: nowhere libnccl-net-nowhere.so"},
      {"testv8", "", "", "testv08", "NET/Plugin: Loaded net plugin testv08 (v8)"},
      {"libnccl-net-testv8.so", "", "", "testv08", "NET/Plugin: Loaded collnet plugin testv08 (v8)"},
      {path8, "", "", "testv08", "Successfully loaded external network plugin "},
      {path8, "", "", "testv08", "Initialized NET plugin testv08"},
      {path8, "", "", "testv08", "Assigned NET plugin testv08 to comm"},
      {path8, "TESTV08", "", "testv08", "Assigned NET plugin testv08 to comm"},
      {path8, "socket", "", "Socket", "Assigned NET plugin Socket to comm"},
      {path8 + "," + path8, "", "", "testv08", "Disabling external plugins: "},
      {"libnccl-net-lacking.so", "", "", "Socket", "libnccl-net-lacking.so: undefined symbol: nobodyHasIt"},
      {" testv8", "", "", "Socket", "Could not find:  testv8"},
      {"nowhere,testv8", "", "", "testv08", "Could not find: nowhere"},
      {pluginFolder() + "/libno-net.so", "", "", "Socket", "libno-net.so is unsupported"},
      {"STATIC_PLUGIN", "", "", "Socket", "Failed to initialize NET plugin inProgram9"},
      {"static_plugin,testv8", "", "", "testv08", "Failed to initialize NET plugin inProgram9"},
      {"testv8", "", "init", "Socket", "Failed to initialize NET plugin testv08: network testv08"},
      {"testv8", "", "devices", "Socket", "devices failed with ncclSystemError"},
      {"testv8", "", "zero-devices", "Socket", "it has no devices"},
      {"testv8", "", "unpack", "Socket", "must be unpacked by kernels"},
      {"testv8", "", "missing", "Socket", "its table has no isend"},
      {"testv8,testv12", "", "init", "testv12", "Failed to initialize NET plugin testv08"},
      {"testv8,testv12", "", "", "testv08", "Disabling external plugins: testv12"},
      {"testv8,testv12", "testv12", "", "testv12", "Disabling external plugins: testv8"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.list + " wanted " + row.wanted + " fault " + row.fault);
    const ScopedLog log("INFO");
    allowLog("told to fail");
    const ScopedEnv fault("TEST_NET_FAULT_V8", row.fault);
    World world(row.list);
    EXPECT_EQ(world.choice(row.wanted), row.chosen);
    EXPECT_TRUE(wasLogged(row.line)) << capturedText();
  }
}

TEST(NetRegistry, SaysOfEachNetworkWhatBecameOfIt) {
  using Outcome = plugin::NetVerdict::Outcome;
  const World world("nowhere,testv8,testv9");
  const plugin::NetChoice choice = world.registry->choose("", {});
  ASSERT_NE(choice.lease, nullptr);
  ASSERT_EQ(choice.verdicts.size(), 4u);
  EXPECT_EQ(choice.verdicts[0].outcome, Outcome::Refused);
  EXPECT_NE(choice.verdicts[0].why, "");
  EXPECT_EQ(choice.verdicts[0].name, "") << "it is not open";
  EXPECT_EQ(choice.verdicts[1].outcome, Outcome::Chosen);
  EXPECT_EQ(choice.verdicts[1].title, "testv8");
  EXPECT_EQ(choice.verdicts[1].name, "testv08");
  EXPECT_EQ(choice.verdicts[1].why, "");
  EXPECT_TRUE(choice.verdicts[1].external);
  EXPECT_EQ(choice.verdicts[2].outcome, Outcome::NotAsked);
  EXPECT_EQ(choice.verdicts[3].outcome, Outcome::NotAsked);
  EXPECT_EQ(choice.verdicts[3].title, "Socket");
  EXPECT_FALSE(choice.verdicts[3].external);

  const World other("");
  const plugin::NetChoice none = other.registry->choose("nosuch", {});
  EXPECT_EQ(none.lease, nullptr);
  ASSERT_EQ(none.verdicts.size(), 1u);
  EXPECT_EQ(none.verdicts[0].outcome, Outcome::Refused);
  EXPECT_EQ(none.verdicts[0].why, "its network is Socket, wanted is nosuch");
}

TEST(NetRegistry, LoadsEveryVersion) {
  for (int version = 6; version <= 12; ++version) {
    World world("testv" + std::to_string(version));
    const auto lease = world.lease();
    ASSERT_NE(lease, nullptr);
    EXPECT_EQ(lease->net().name(), networkName(version));
    ASSERT_NE(lease->collNet(), nullptr);
    EXPECT_EQ(lease->collNet()->name(), networkName(version));
  }
}

TEST(NetRegistry, NamesTheNetworkThatIsWantedAndNotItsLibrary) {
  World world("testv8", 0);
  expectLog("its network is testv08, wanted is testv8.");
  expectLog("its network is testv08, wanted is testv0.");
  EXPECT_EQ(world.registry->assign("testv8", {}).status().code(), ncclInvalidUsage);
  EXPECT_EQ(world.registry->assign("testv0", {}).status().code(), ncclInvalidUsage) << "the beginning is not enough";
  EXPECT_EQ(world.choice("TestV08"), "testv08");
}

TEST(NetRegistry, LoadsWhatIsNotWantedButDoesNotInitialiseIt) {
  World world("testv8");
  EXPECT_EQ(world.choice("Socket"), "Socket");
  ASSERT_NE(countsOf(8), nullptr);
  EXPECT_EQ(countsOf(8)->inits, 0);
  EXPECT_EQ(countsOf(8)->collInits, 0);
}

TEST(NetRegistry, TakesANetworkWithoutACollNet) {
  World world("multi");
  const auto lease = world.lease();
  EXPECT_EQ(lease->net().name(), "multi");
  EXPECT_EQ(lease->collNet(), nullptr);
  EXPECT_NE(lease->collNetLack().why.find("exports no ncclCollNetPlugin_v6 to _v12"), std::string::npos)
      << lease->collNetLack().why;
  EXPECT_FALSE(lease->collNetLack().failed);
}

TEST(NetRegistry, AFailureOfALaterInitDisablesTheNetworkForThoseToCome) {
  const ScopedEnv fault("TEST_NET_FAULT_V12", "init@1");
  expectLog("init: told to fail");  // once
  World world("testv12");
  const auto first = world.lease();
  EXPECT_EQ(first->net().name(), "testv12");
  EXPECT_EQ(world.choice(), "Socket");
  EXPECT_EQ(world.choice(), "Socket");
  EXPECT_EQ(countsOf(12)->inits, 1);
  EXPECT_EQ(first->net().devices().value(), 1) << "who has it keeps it";
}

TEST(NetRegistry, TellsWhatIsWrongWithEach) {
  const ScopedEnv fault("TEST_NET_FAULT_V8", "zero-devices");
  World world("nowhere,testv8,testv7", -1);
  allowLog("the fake network has no interface");
  expectLog(
      "Failed to initialize any NET plugin: nowhere: not found: nowhere libnccl-net-nowhere.so; testv8: its network "
      "is testv08, wanted is nothing; testv7: its network is testv07, wanted is nothing; Socket: its network is "
      "Socket, wanted is nothing");
  EXPECT_EQ(world.registry->assign("nothing", {}).status().code(), ncclInvalidUsage);

  World other("testv8", -1);
  expectLog("it has no devices; Socket: the fake network has no interface");
  EXPECT_EQ(other.registry->assign("", {}).status().code(), ncclInvalidUsage);

  World empty("none", 0);
  expectLog("Failed to initialize any NET plugin: there is none");
  EXPECT_EQ(empty.registry->assign("", {}).status().code(), ncclInvalidUsage);
}

TEST(NetRegistry, UnloadsWhatNobodyUses) {
  const ScopedLog log("INFO");
  World world("testv12");
  auto first = world.lease();
  auto second = world.lease();
  ASSERT_NE(countsOf(12), nullptr);
  EXPECT_EQ(countsOf(12)->inits, 2);
  EXPECT_EQ(countsOf(12)->collInits, 2);
  first.reset();
  ASSERT_NE(countsOf(12), nullptr);
  EXPECT_EQ(countsOf(12)->finalizes, 1);
  EXPECT_EQ(countsOf(12)->collFinalizes, 1);
  EXPECT_FALSE(wasLogged("Unloading plugin"));
  second.reset();
  EXPECT_EQ(countsOf(12), nullptr);
  EXPECT_TRUE(wasLogged("Unloading plugin testv12"));

  // The next communicator loads it anew.
  EXPECT_EQ(world.choice(), "testv12");
  EXPECT_EQ(countsOf(12), nullptr);
}

TEST(NetRegistry, KeepsLibrariesWhereAsked) {
  World world("testv11", 1, true);
  EXPECT_EQ(world.choice(), "testv11");
  ASSERT_NE(countsOf(11), nullptr);
  EXPECT_EQ(countsOf(11)->finalizes, 1);
  EXPECT_EQ(world.choice(), "testv11");
  EXPECT_EQ(countsOf(11)->inits, 2);
  world.registry.reset();
  EXPECT_EQ(countsOf(11), nullptr);
}

TEST(NetRegistry, OffersOnlyTheFirstLibraryThatWasChosen) {
  World world("testv8,testv12");
  EXPECT_EQ(world.choice("testv12"), "testv12");
  // The other one stays out, for all communicators to come.
  expectLog("testv8: the network of testv12 was chosen before");
  EXPECT_EQ(world.registry->assign("testv08", {}).status().code(), ncclInvalidUsage);
  EXPECT_EQ(world.choice(), "testv12");
  EXPECT_EQ(world.choice("Socket"), "Socket");
}

TEST(NetRegistry, LeavesOthersAloneWhereABuiltInNetworkWasChosen) {
  World world("testv12");
  EXPECT_EQ(world.choice("Socket"), "Socket");
  EXPECT_EQ(world.choice("testv12"), "testv12");
}

TEST(NetRegistry, DoesWithoutACollNetThatCannotBeUsed) {
  const ScopedLog log("INFO");
  const ScopedEnv fault("TEST_NET_FAULT_V9", "coll-init");
  World world("testv9");
  const auto lease = world.lease();
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(lease->collNet(), nullptr);
  EXPECT_TRUE(wasLogged("collNet of plugin testv09 is not used: network testv09 (collNet v9"));
  const auto again = world.lease();
  for (const auto* const each : {&lease, &again}) {
    EXPECT_EQ((*each)->collNet(), nullptr);
    EXPECT_NE((*each)->collNetLack().why.find("it said: test net: collNet init: told to fail"), std::string::npos)
        << (*each)->collNetLack().why;
    EXPECT_TRUE((*each)->collNetLack().failed) << "of every communicator, for it is not tried again";
  }
  EXPECT_EQ(countsOf(9)->collInits, 0);
}

TEST(NetRegistry, NeverTriesAgainWhatFailed) {
  const ScopedLog log("INFO");
  const ScopedEnv fault("TEST_NET_FAULT_V10", "init");
  expectLog("init: told to fail");  // once
  World world("testv10");
  EXPECT_EQ(world.choice(), "Socket");
  EXPECT_EQ(world.choice(), "Socket");
}

TEST(NetRegistry, ServesManyThreads) {
  World world("testv12");
  const auto held = world.lease();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) EXPECT_EQ(world.choice(), "testv12");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(countsOf(12)->inits, 81);
  EXPECT_EQ(countsOf(12)->finalizes, 80);
}

}  // namespace
}  // namespace tutti::test
