// What NVML tells of the machine that SOFTGPU_TOPO describes: a DGX-1 with eight V100 (own_dgx1v.xml).
#include <unistd.h>

#include <map>
#include <utility>

#include "softgpu/nvml/ask.h"

namespace tutti::softgpu::nvml::test {
namespace {

using NvmlOfFile = Started;

unsigned peers(Device a, Device b, unsigned what) {
  unsigned status = 99;
  EXPECT_EQ(ask("nvmlDeviceGetP2PStatus", a, b, what, &status), kSuccess);
  return status;
}

unsigned ancestor(Device a, Device b) {
  unsigned level = 99;
  EXPECT_EQ(ask("nvmlDeviceGetTopologyCommonAncestor", a, b, &level), kSuccess);
  return level;
}

TEST_F(NvmlOfFile, NvLinksLeadToTheDevicesOfTheFileAndBack) {
  std::map<std::pair<unsigned, unsigned>, int> links;
  for (unsigned i = 0; i < 8; ++i) {
    for (unsigned link = 0; link < 6; ++link) {
      unsigned active = 0;
      unsigned type = 9;
      PciInfo pci{};
      ASSERT_EQ(ask("nvmlDeviceGetNvLinkState", deviceAt(i), link, &active), kSuccess);
      EXPECT_EQ(active, 1U);
      ASSERT_EQ(ask("nvmlDeviceGetNvLinkRemoteDeviceType", deviceAt(i), link, &type), kSuccess);
      EXPECT_EQ(type, kEndGpu);
      ASSERT_EQ(ask("nvmlDeviceGetNvLinkRemotePciInfo_v2", deviceAt(i), link, &pci), kSuccess);
      Device remote = nullptr;
      unsigned index = 99;
      ASSERT_EQ(ask("nvmlDeviceGetHandleByPciBusId_v2", static_cast<const char*>(pci.busId), &remote), kSuccess);
      ASSERT_EQ(ask("nvmlDeviceGetIndex", remote, &index), kSuccess);
      ++links[{i, index}];
    }
    unsigned active = 0;
    EXPECT_EQ(ask("nvmlDeviceGetNvLinkState", deviceAt(i), 6u, &active), kInvalidArgument);
  }
  EXPECT_EQ((links[{0, 3}]), 2);
  for (const auto& [ends, count] : links) {
    EXPECT_EQ((links[{ends.second, ends.first}]), count) << ends.first << " and " << ends.second;
  }
}

TEST_F(NvmlOfFile, PeersReachEachOtherAndByNvLinkWhereThereIsOne) {
  EXPECT_EQ(peers(deviceAt(0), deviceAt(5), kPeerRead), kPeerOk);
  EXPECT_EQ(peers(deviceAt(0), deviceAt(5), kPeerNvLink), kPeerNotSupported);
  EXPECT_EQ(peers(deviceAt(0), deviceAt(3), kPeerNvLink), kPeerOk);
  unsigned status = 0;
  EXPECT_EQ(ask("nvmlDeviceGetP2PStatus", deviceAt(0), deviceAt(0), kPeerRead, &status), kInvalidArgument);
}

TEST_F(NvmlOfFile, CommonAncestorsAreThoseOfThePciTree) {
  EXPECT_EQ(ancestor(deviceAt(0), deviceAt(0)), kInternal);
  EXPECT_EQ(ancestor(deviceAt(0), deviceAt(1)), kOneSwitch);
  EXPECT_EQ(ancestor(deviceAt(0), deviceAt(2)), kHostBridge);
  EXPECT_EQ(ancestor(deviceAt(0), deviceAt(4)), kSystem);
  unsigned count = 0;
  EXPECT_EQ(ask("nvmlDeviceGetTopologyNearestGpus", deviceAt(0), unsigned{kHostBridge}, &count,
                static_cast<Device*>(nullptr)),
            kSuccess);
  ASSERT_EQ(count, 2U);
  Device near[2] = {};
  EXPECT_EQ(ask("nvmlDeviceGetTopologyNearestGpus", deviceAt(0), unsigned{kHostBridge}, &count, &near[0]), kSuccess);
  EXPECT_EQ(near[0], deviceAt(2));
  EXPECT_EQ(near[1], deviceAt(3));
}

TEST_F(NvmlOfFile, PlacesAndKindsAreThoseOfTheFile) {
  EXPECT_EQ(busIdOf(deviceAt(0)), "00000000:06:00.0");
  EXPECT_EQ(busIdOf(deviceAt(3)), "00000000:0B:00.0");
  unsigned value = 0;
  EXPECT_EQ(ask("nvmlDeviceGetMaxPcieLinkGeneration", deviceAt(0), &value), kSuccess);
  EXPECT_EQ(value, 3U);
  EXPECT_EQ(ask("nvmlDeviceGetArchitecture", deviceAt(0), &value), kSuccess);
  EXPECT_EQ(value, 5U) << "Volta";
  FieldValue fields[2] = {};
  fields[0].field = kFieldNvLinkCount;
  fields[1].field = 3;
  EXPECT_EQ(ask("nvmlDeviceGetFieldValues", deviceAt(0), 2, &fields[0]), kSuccess);
  EXPECT_EQ(fields[0].result, kSuccess);
  EXPECT_EQ(fields[0].value.word, 6U);
  EXPECT_EQ(fields[1].result, kNotSupported);
}

TEST_F(NvmlOfFile, ProcessorsAreOnesThatThisMachineHas) {
  const auto here = static_cast<unsigned>(sysconf(_SC_NPROCESSORS_CONF));
  for (unsigned i = 0; i < 8; ++i) {
    unsigned long sets[16] = {};
    EXPECT_EQ(ask("nvmlDeviceGetCpuAffinity", deviceAt(i), 16u, &sets[0]), kSuccess);
    unsigned count = 0;
    for (unsigned bit = 0; bit < 16 * 64; ++bit) {
      if ((sets[bit / 64] >> bit % 64 & 1ul) == 0) continue;
      ++count;
      EXPECT_LT(bit, here);
    }
    EXPECT_GT(count, 0U) << "device " << i;
  }
  unsigned long nodes = 0;
  EXPECT_EQ(ask("nvmlDeviceGetMemoryAffinity", deviceAt(7), 1u, &nodes, 0u), kSuccess);
  EXPECT_EQ(nodes, 2UL);
}

}  // namespace
}  // namespace tutti::softgpu::nvml::test
