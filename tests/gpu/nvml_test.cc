#include "gpu/nvml.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tutti::gpu {
namespace {

Nvml fakeNvml() {
  return Nvml::open(std::getenv("TUTTI_TEST_NVML"));
}

TEST(Nvml, KnowsDevicesByTheirBusId) {
  const Nvml nvml = fakeNvml();
  EXPECT_EQ(nvml.indexOf("0000:1b:00.0"), 5);
  EXPECT_EQ(nvml.indexOf("0000:1c:00.0"), -1) << "it has no such device";
}

TEST(Nvml, KnowsNothingWhereItIsMissing) {
  EXPECT_EQ(Nvml::open("libabsent-ml.so.1").indexOf("0000:1b:00.0"), -1);
  EXPECT_EQ(Nvml::open(std::getenv("TUTTI_TEST_OLD_DRIVER")).indexOf("0000:1b:00.0"), -1) << "no NVML";
}

TEST(Nvml, SaysWhatIsUnknownWhereItIsMissing) {
  const NvmlMachine machine = Nvml::open("libabsent-ml.so.1").readMachine();
  EXPECT_TRUE(machine.gpus.empty());
  EXPECT_FALSE(machine.complete);
  ASSERT_EQ(machine.unknown.size(), 1u);
  EXPECT_NE(machine.unknown[0].find("libabsent-ml.so.1"), std::string::npos) << machine.unknown[0];
  EXPECT_NE(machine.unknown[0].find("NVLinks"), std::string::npos) << machine.unknown[0];
  const NvmlMachine other = Nvml::open(std::getenv("TUTTI_TEST_OLD_DRIVER")).readMachine();
  ASSERT_EQ(other.unknown.size(), 1u);
  EXPECT_NE(other.unknown[0].find("nvmlInit_v2"), std::string::npos) << other.unknown[0];
}

TEST(Nvml, ReadsBusIdsCapabilitiesAndPcieLinks) {
  const NvmlMachine machine = fakeNvml().readMachine();
  ASSERT_EQ(machine.gpus.size(), 6u);
  EXPECT_EQ(machine.gpus[5].index, 5);
  EXPECT_EQ(machine.gpus[5].busId, "00000000:1b:00.0");
  EXPECT_EQ(machine.gpus[5].computeCapability, 91);
  EXPECT_EQ(machine.gpus[5].pcieGeneration, 5);
  EXPECT_EQ(machine.gpus[5].pcieWidth, 16);
  EXPECT_EQ(machine.gpus[0].pcieGeneration, 0) << "it did not answer";
}

TEST(Nvml, TakesActiveLinksThatCarryPeerTraffic) {
  const NvmlMachine machine = fakeNvml().readMachine();
  ASSERT_EQ(machine.gpus.size(), 6u);
  ASSERT_EQ(machine.gpus[5].links.size(), 3u) << "one of its four is down";
  EXPECT_EQ(machine.gpus[5].links[0].remote, NvmlRemote::Gpu);
  EXPECT_EQ(machine.gpus[5].links[0].busId, "00000000:1a:00.0");
  EXPECT_EQ(machine.gpus[5].links[2].remote, NvmlRemote::Switch);
  EXPECT_EQ(machine.gpus[5].links[2].busId, "00000000:c0:00.0");
  EXPECT_EQ(machine.gpus[2].links.size(), 1u) << "one of its two carries no peer traffic";
  EXPECT_TRUE(machine.gpus[0].links.empty());
}

TEST(Nvml, ReadsC2cLinksThatAreUp) {
  const NvmlMachine machine = fakeNvml().readMachine();
  ASSERT_EQ(machine.gpus.size(), 6u);
  EXPECT_EQ(machine.gpus[0].c2cLinks, 9);
  EXPECT_EQ(machine.gpus[0].c2cBandwidth, 44712);
  EXPECT_EQ(machine.gpus[1].c2cLinks, 0);
}

TEST(Nvml, KnowsWhichGpusAreDividedAndWhichPairsAreRefused) {
  const NvmlMachine machine = fakeNvml().readMachine();
  ASSERT_EQ(machine.gpus.size(), 6u);
  for (const NvmlGpu& gpu : machine.gpus) EXPECT_EQ(gpu.mig, gpu.index == 3);
  ASSERT_EQ(machine.refusals.size(), 1u);
  EXPECT_EQ(machine.refusals[0].a, 1);
  EXPECT_EQ(machine.refusals[0].b, 2);
  EXPECT_EQ(machine.refusals[0].reason, "chipset not supported");
}

TEST(Nvml, SaysWhichQuestionsWereNotAnswered) {
  const NvmlMachine machine = fakeNvml().readMachine();
  EXPECT_FALSE(machine.complete) << "one GPU is lost";
  std::string all;
  for (const std::string& sentence : machine.unknown) all += sentence + "\n";
  EXPECT_EQ(machine.unknown.size(), 3u) << all;
  EXPECT_NE(all.find("NvLinkState of GPU 1 (00000000:17:00.0): GPU is lost"), std::string::npos) << all;
  EXPECT_NE(all.find("GPU 6: GPU is lost"), std::string::npos) << all;
  EXPECT_NE(all.find("P2PStatus of GPU 0 (00000000:16:00.0): GPU is lost: whether the driver refuses"), all.npos)
      << "once for all pairs: " << all;
}

}  // namespace
}  // namespace tutti::gpu
