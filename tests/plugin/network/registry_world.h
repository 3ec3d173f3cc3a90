// A registry of networks for one test, with the test plugins and perhaps a built-in network.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/settings/params.h"
#include "plugin/network/idle_net.h"
#include "plugin/network/registry.h"

namespace tutti::test {

/// A built-in network that can only be begun.
class FakeNet final : public IdleNet {
 public:
  explicit FakeNet(int count) : count_(count) {}
  std::string_view name() const override { return "Socket"; }
  Result<int> devices() override { return count_; }

 private:
  int count_;
};

class FakeSource final : public plugin::NetSource {
 public:
  explicit FakeSource(int devices = 1) : devices_(devices) {}
  std::string_view name() const override { return "Socket"; }
  Result<std::unique_ptr<plugin::Net>> open(const plugin::NetOpening&) override {
    if (devices_ < 0) return fail(ncclSystemError, "the fake network has no interface");
    return std::unique_ptr<plugin::Net>(std::make_unique<FakeNet>(devices_));
  }

 private:
  int devices_;
};

/// A registry with a list of plugins, and perhaps a built-in network of so many devices.
struct World {
  std::unique_ptr<plugin::NetRegistry> registry;

  explicit World(const std::string& list, int builtInDevices = 1, bool keepLoaded = false, bool named = false) {
    Params::Misc settings;
    settings.netPlugin = list;
    settings.netPluginRefCount = keepLoaded ? 1 : 0;
    std::vector<std::unique_ptr<plugin::NetSource>> builtIn;
    if (builtInDevices != 0) builtIn.push_back(std::make_unique<FakeSource>(builtInDevices));
    registry = std::make_unique<plugin::NetRegistry>(settings, named, std::move(builtIn));
  }
  std::unique_ptr<plugin::NetLease> lease(std::string_view wanted = "") {
    auto lease = registry->assign(wanted, {});
    EXPECT_TRUE(lease.ok()) << lastErrorText();
    return lease.ok() ? std::move(lease).value() : nullptr;
  }
  /// The name of what a communicator gets; "": nothing.
  std::string choice(std::string_view wanted = "") {
    const auto got = lease(wanted);
    return got == nullptr ? "" : std::string(got->net().name());
  }
};

}  // namespace tutti::test
