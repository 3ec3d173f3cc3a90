// What tests of plugins share: the test plugins by version, settings for one test, and a connection within the process.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dl.h"
#include "base/log.h"
#include "plugin/network/net_plugin.h"
#include "plugin/network/test_net.h"
#include "support/scoped_log.h"

namespace tutti::test {

/// Where the build has put the test plugins.
inline std::string pluginFolder() {
  const char* folder = std::getenv("TUTTI_TEST_PLUGINS");
  return folder != nullptr ? folder : ".";
}
inline std::string pluginPath(int version) {
  return pluginFolder() + "/libnccl-net-testv" + std::to_string(version) + ".so";
}
/// The name of the network in it: "testv06".
inline std::string networkName(int version) {
  return std::string("testv") + (version < 10 ? "0" : "") + std::to_string(version);
}
/// A function that a loaded test plugin exports; null: it is not loaded.
template <class Function>
Function* functionOf(int version, const char* name) {
  void* const library = ::dlopen(pluginPath(version).c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto* const function = reinterpret_cast<Function*>(::dlsym(library, name));
  ::dlclose(library);
  return function;
}
/// What it has counted; null: it is not loaded. The counts end with the library.
inline const TestNetCounts* countsOf(int version) {
  auto* const function = functionOf<TestNetCountsFunction>(version, "testNetCounts");
  return function != nullptr ? function() : nullptr;
}
/// What it was given, with the fault "records".
inline TestNetRecord netRecordOf(int version) {
  auto* const function = functionOf<TestNetRecordFunction>(version, "testNetRecord");
  return function != nullptr ? function() : TestNetRecord{};
}

/// Tests of what network plugins of each version are given.
class NetArgumentsOf : public testing::TestWithParam<int> {
 protected:
  static bool since(int version) { return GetParam() >= version; }
  static TestNetRecord record() { return netRecordOf(GetParam()); }
};

/// A test plugin, loaded and opened.
struct OpenPlugin {
  DlLibrary library;
  std::unique_ptr<plugin::LoadedNet> source;
  std::unique_ptr<plugin::Net> net;
  const TestNetCounts* counts = nullptr;

  explicit OpenPlugin(int version, const plugin::NetOpening& opening = {}) {
    std::string why;
    library = DlLibrary::open(pluginPath(version), &why);
    EXPECT_TRUE(library.valid()) << why;
    source = plugin::findNet(library, pluginPath(version));
    if (source == nullptr) return;
    plugin::NetAttempt<plugin::Net> attempt = source->attempt(opening);
    EXPECT_EQ(attempt.why, "");
    net = std::move(attempt.net);
    counts = countsOf(version);
  }
};

/// That a network or collNet fuses devices as its version can: as many as it takes become number `next`, more do not.
template <class AnyNet>
void expectFusesAsItsVersionCan(AnyNet& net, int version, int next) {
  EXPECT_EQ(net.fuses(), version >= 9);
  EXPECT_EQ(net.maxFused(), version < 9 ? 0 : version < 12 ? 4 : 8);
  const std::vector<int> devices{0, 1, 2, 3, 4, 5, 6, 7, 8};
  if (!net.fuses()) {
    EXPECT_NE(net.makeVirtual(std::span(devices).first(2)).why.find("it fuses no devices"), std::string::npos);
    return;
  }
  const auto most = static_cast<std::size_t>(net.maxFused());
  EXPECT_EQ(net.makeVirtual(std::span(devices).first(most)).device, next);
  const plugin::NetFusion tooMany = net.makeVirtual(std::span(devices).first(most + 1));
  EXPECT_NE(tooMany.why.find("devices; at most"), std::string::npos) << tooMany.why;
}

/// A connection of a network to itself.
struct Loop {
  plugin::Net& net;
  plugin::NetHandle handle{};
  void* listener = nullptr;
  void* sender = nullptr;
  void* receiver = nullptr;

  explicit Loop(plugin::Net& n) : net(n) {
    listener = net.listen(0, handle).value();
    for (int i = 0; i < 1000 && (sender == nullptr || receiver == nullptr); ++i) {
      if (sender == nullptr) sender = net.connect(0, handle).value();
      if (receiver == nullptr) receiver = net.accept(listener).value();
    }
    EXPECT_NE(sender, nullptr);
    EXPECT_NE(receiver, nullptr);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() {
    EXPECT_TRUE(net.closeSend(sender).ok());
    EXPECT_TRUE(net.closeRecv(receiver).ok());
    EXPECT_TRUE(net.closeListen(listener).ok());
  }
};

}  // namespace tutti::test
