#include "comm/settings/set_by_plugin.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

/// An environment that changes.
struct Env : EnvReader {
  Settings settings;
  std::optional<std::string> get(std::string_view name) const override { return MapEnv(settings).get(name); }
  std::vector<std::string> names() const override { return MapEnv(settings).names(); }
};

TEST(SetByPlugin, KnowsWhatANetworkHasSetOrChanged) {
  Env env;
  env.settings = {{"NCCL_ALGO", "ring"}, {"NCCL_BUFFSIZE", "8192"}, {"PATH", "/bin"}};
  SetByPlugin set;
  const auto begin = [&]() -> Result<std::string> {
    env.settings["NCCL_PROTO"] = "Simple";
    env.settings["NCCL_BUFFSIZE"] = "65536";
    env.settings["FI_EFA_FORK_SAFE"] = "1";
    return std::string("eager");
  };
  ASSERT_TRUE(set.during(env, begin).ok());
  EXPECT_EQ(set.names(), (SettingNames{"NCCL_BUFFSIZE", "NCCL_PROTO"}));
}

TEST(SetByPlugin, ANetworkThatDoesNotBeginSetsNothing) {
  SetByPlugin set;
  const auto begin = []() -> Result<std::string> { return Status(ncclSystemError); };
  EXPECT_EQ(set.during(Env(), begin).code(), ncclSystemError);
  EXPECT_TRUE(set.names().empty());
}

}  // namespace
}  // namespace tutti::comm
