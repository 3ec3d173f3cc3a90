#include "comm/settings/set_by_plugin.h"

#include <gtest/gtest.h>

#include <latch>
#include <mutex>
#include <thread>

namespace tutti::comm {
namespace {

using Name = Result<std::string>;

/// An environment that changes.
class Env : public EnvReader {
 public:
  explicit Env(Settings settings = {}) : settings_(std::move(settings)) {}
  void set(const std::string& name, const std::string& value) {
    const std::lock_guard lock(mutex_);
    settings_[name] = value;
  }
  std::optional<std::string> get(std::string_view name) const override { return now().get(name); }
  std::vector<std::string> names() const override { return now().names(); }

 private:
  MapEnv now() const {
    const std::lock_guard lock(mutex_);
    return MapEnv(settings_);
  }
  mutable std::mutex mutex_;
  Settings settings_;  // guarded by mutex_
};

TEST(SetByPlugin, KnowsWhatAPluginHasSetOrChanged) {
  Env env({{"NCCL_ALGO", "ring"}, {"NCCL_BUFFSIZE", "8192"}, {"PATH", "/bin"}});
  SetByPlugin set;
  const auto begin = [&]() -> Name {
    env.set("NCCL_PROTO", "Simple");
    env.set("NCCL_BUFFSIZE", "65536");
    env.set("FI_EFA_FORK_SAFE", "1");
    return std::string("network eager");
  };
  ASSERT_TRUE(set.during(env, begin).ok());
  EXPECT_EQ(set.names(), (SettingNames{"NCCL_BUFFSIZE", "NCCL_PROTO"}));
}

TEST(SetByPlugin, APluginThatDoesNotBeginSetsNothing) {
  SetByPlugin set;
  const auto begin = []() -> Name { return Status(ncclSystemError); };
  EXPECT_EQ(set.during(Env(), begin).code(), ncclSystemError);
  EXPECT_TRUE(set.names().empty());
}

TEST(SetByPlugin, WhatChangedBeforeAnInitIsNotThePlugins) {
  Env env;
  SetByPlugin set;
  const auto nothing = []() -> Name { return std::string("network idle"); };
  ASSERT_TRUE(set.during(env, nothing).ok());
  env.set("NCCL_PROTO", "LL");
  ASSERT_TRUE(set.during(env, nothing).ok());
  EXPECT_TRUE(set.names().empty());
}

TEST(SetByPlugin, WhoBeginsBesideAnInitKnowsAfterwardsWhatThatHasSet) {
  Env env;
  SetByPlugin set;
  std::latch inside(1);
  std::thread first([&] {
    const auto slow = [&]() -> Name {
      inside.count_down();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      env.set("NCCL_PROTO", "LL");
      return std::string("network slow");
    };
    EXPECT_TRUE(set.during(env, slow).ok());
  });
  inside.wait();
  EXPECT_TRUE(set.during(env, []() -> Name { return std::string("network slow"); }).ok());
  EXPECT_EQ(set.names(), SettingNames{"NCCL_PROTO"});
  first.join();
}

TEST(SetByPlugin, AnInitThatWaitsForAnotherOneGetsIt) {
  Env env;
  SetByPlugin set(std::chrono::milliseconds(20));
  std::latch both(2);
  const auto together = [&](const char* name) {
    EXPECT_TRUE(set.during(env,
                           [&]() -> Name {
                             both.arrive_and_wait();
                             env.set(name, "1");
                             return std::string("profiler pair");
                           })
                    .ok());
    EXPECT_TRUE(set.names().contains(name));
  };
  std::thread other([&] { together("NCCL_A"); });
  together("NCCL_B");
  other.join();
}

TEST(SetByPlugin, IsReadWhileNoPluginIsInItsInit) {
  Env env;
  SetByPlugin set;
  std::latch inside(1);
  std::thread first([&] {
    EXPECT_TRUE(set.during(env,
                           [&]() -> Name {
                             inside.count_down();
                             std::this_thread::sleep_for(std::chrono::milliseconds(50));
                             env.set("NCCL_PROTO", "LL");
                             return std::string("tuner slow");
                           })
                    .ok());
  });
  inside.wait();
  set.undisturbed([&] { EXPECT_TRUE(env.get("NCCL_PROTO").has_value()); });
  first.join();
}

}  // namespace
}  // namespace tutti::comm
