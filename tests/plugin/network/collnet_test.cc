// CollNets of plugins of every version, over networks of one rank.
#include "plugin/network/collnet.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "plugin/network/open_collnet.h"
#include "plugin/plugin_fixture.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

class CollNetPlugin : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Versions, CollNetPlugin, testing::Values(6, 7, 8, 9, 10, 11, 12),
                         [](const auto& test) { return "V" + std::to_string(test.param); });

TEST_P(CollNetPlugin, SaysWhatItIs) {
  const ScopedEnv records("TEST_NET_FAULT", "records");
  const OpenCollNet plugin(GetParam(), {.commId = 99});
  EXPECT_EQ(plugin.source->version(), GetParam());
  EXPECT_EQ(plugin.net->name(), networkName(GetParam()));
  EXPECT_EQ(plugin.net->devices().value(), 1);
  EXPECT_EQ(plugin.net->properties(0).value().maxCollBytes, std::size_t{1} << 29);
  EXPECT_TRUE(plugin.net->reduces({ncclFloat32, ncclSum}).value());
  EXPECT_FALSE(plugin.net->reduces({ncclFloat32, ncclMax}).value());
  EXPECT_EQ(plugin.counts->collInits, 1);
  EXPECT_EQ(netRecordOf(GetParam()).collInit.commId, GetParam() >= 11 ? 99U : 0U);
  EXPECT_EQ(plugin.net->fuses(), GetParam() >= 9);
}

TEST_P(CollNetPlugin, Reduces) {
  OpenCollNet plugin(GetParam());
  std::array<float, 4> in{1, 2, 3, 4};
  std::array<float, 4> out{};
  const auto request = plugin.net->iallreduce(plugin.connection, {in.data(), sizeof(in), nullptr},
                                              {out.data(), sizeof(out), nullptr}, {ncclFloat32, ncclSum});
  EXPECT_TRUE(plugin.finished(request, 16));
  EXPECT_EQ(out, in);
  EXPECT_EQ(plugin.net->iflush(plugin.connection, {out.data(), sizeof(out), nullptr}).value(), nullptr);
}

TEST_P(CollNetPlugin, GathersAndScattersSinceVersion8) {
  OpenCollNet plugin(GetParam());
  EXPECT_EQ(plugin.net->gathers(), GetParam() >= 8);
  EXPECT_EQ(plugin.net->scatters(), GetParam() >= 8);
  std::array<float, 4> in{1, 2, 3, 4};
  std::array<float, 4> gathered{};
  std::array<float, 4> scattered{};
  const plugin::CollNetBuffer from{in.data(), sizeof(in), nullptr};
  const plugin::CollNetWindow window{sizeof(in), 0, sizeof(in)};
  if (GetParam() < 8) {
    expectLog("iallgather: the network has no such function");
    expectLog("ireducescatter: the network has no such function");
  }
  const auto gather = plugin.net->iallgather(plugin.connection, from, {gathered.data(), sizeof(in), nullptr}, window);
  const auto scatter =
      plugin.net->ireducescatter(plugin.connection, from, {scattered.data(), sizeof(in), nullptr}, window, {});
  EXPECT_EQ(gather.ok(), GetParam() >= 8);
  EXPECT_EQ(scatter.ok(), GetParam() >= 8);
  if (!gather.ok() || !scatter.ok()) return;
  EXPECT_TRUE(plugin.finished(gather, 16));
  EXPECT_TRUE(plugin.finished(scatter, 16));
  EXPECT_EQ(gathered, in);
  EXPECT_EQ(scattered, in);
}

TEST_P(CollNetPlugin, KeepsToTheLengthsOfItsVersion) {
  OpenCollNet plugin(GetParam());
  char byte = 0;
  const std::size_t tooMuch = std::size_t{1} << 31;
  if (GetParam() <= 7) expectLog("regMr: 2147483648 bytes");
  EXPECT_EQ(plugin.net->registerMemory(plugin.connection, &byte, tooMuch, plugin::PtrKind::Host).ok(), GetParam() >= 8);
  const plugin::CollNetBuffer large{&byte, std::size_t{1} << 33, nullptr};
  if (GetParam() <= 8) {
    expectLog("iallreduce: 2147483648 elements; this version of the interface takes at most 1073741824");
    EXPECT_EQ(plugin.net->iallreduce(plugin.connection, large, large, {ncclFloat32, ncclSum}).status().code(),
              ncclInternalError);
  }
  if (GetParam() == 8) {
    expectLog("iallgather: 536870913 bytes");
    const plugin::CollNetBuffer part{&byte, (std::size_t{1} << 29) + 1, nullptr};
    EXPECT_FALSE(plugin.net->iallgather(plugin.connection, part, part, {}).ok());
  }
}

TEST_P(CollNetPlugin, FusesOnlyWithinItsVersion) {
  const ScopedEnv ports("TEST_NET_FAULT", "ports=10");
  const OpenCollNet plugin(GetParam());
  expectFusesAsItsVersionCan(*plugin.net, GetParam(), 10);
  EXPECT_EQ(plugin.counts->collFusions, plugin.net->fuses() ? 1 : 0)
      << "the plugin has no room for more, and is not asked";
  if (!plugin.net->fuses()) return;
  const plugin::NetProperties fused = plugin.net->properties(10).value();
  std::vector<int> parts(static_cast<std::size_t>(plugin.net->maxFused()));
  std::iota(parts.begin(), parts.end(), 0);
  EXPECT_EQ(fused.physical, parts);
  EXPECT_EQ(fused.speedMbps, plugin.net->maxFused() * plugin.net->properties(0).value().speedMbps);
  EXPECT_EQ(plugin.net->properties(1).value().physical, std::vector<int>{1});
}

TEST_P(CollNetPlugin, SaysWhyItDoesNotFuse) {
  const ScopedEnv fault("TEST_NET_FAULT", "ports=4,coll-fuse");
  const OpenCollNet plugin(GetParam());
  if (!plugin.net->fuses()) return;
  const std::vector<int> devices{0, 1};
  // Without a warning of ours: whether it is an error is for the caller to say.
  const plugin::NetFusion made = plugin.net->makeVirtual(devices);
  EXPECT_EQ(made.device, -1);
  const std::string words = "(collNet v" + std::to_string(GetParam());
  EXPECT_NE(made.why.find(words), std::string::npos) << made.why;
  EXPECT_NE(made.why.find("makeVDevice failed with ncclSystemError; it said: test net: makeVDevice: told to fail"),
            std::string::npos)
      << made.why;
}

TEST_P(CollNetPlugin, IsFinalizedWithEachCommunicatorSinceVersion11) {
  OpenCollNet plugin(GetParam());
  auto second = plugin.source->attempt({});
  ASSERT_NE(second.net, nullptr);
  EXPECT_EQ(plugin.counts->collInits, GetParam() >= 11 ? 2 : 1);
  second.net.reset();
  EXPECT_EQ(plugin.counts->collFinalizes, GetParam() >= 11 ? 1 : 0);
}

}  // namespace
}  // namespace tutti::test
