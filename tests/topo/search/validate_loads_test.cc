// What each pattern costs on links made by hand, and ways that are not what they say.
#include "topo/search/validate_loads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topo/search/sketch.h"

namespace tutti::topo {
namespace {

using test::Checked;
using test::fourGpus;
using test::Sketch;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ValidateGraph, SharesTheNetworksTrafficBetweenTwoGpusOfABalancedTree) {
  test::Sketch sketch(CpuKind::Amd);
  sketch.addSwitch(24);
  for (int i = 0; i < 2; ++i) sketch.addGpu(sketch.switches[0], 80, 12);
  sketch.nvLink(0, 1, 80);
  sketch.addNet(sketch.switches[0], 25, {0x100, 1});
  const test::Checked two(sketch);
  Graph tree = two.graph(GraphId::Tree, Pattern::BalancedTree, 40, 24);
  two.add(tree, {0, 1}, 0, 0);
  EXPECT_THAT(two.faults(tree, true), IsEmpty());
  tree.pattern = Pattern::Tree;
  EXPECT_THAT(two.faults(tree, true), Contains(HasSubstr("carries 24.000 GB/s and can carry 12.000 (channel 0)")));
}

TEST(ValidateGraph, SharesADirectHeadsBandwidthAmongTheOthers) {
  const test::Checked four(test::fourGpus());
  Graph direct = four.graph(GraphId::CollNetDirect, Pattern::CollNetDirect, 60);
  direct.typeIntra = PathType::Nvb;
  four.add(direct, {0, 1, 2, 3});
  EXPECT_THAT(four.faults(direct), IsEmpty()) << "20 to each neighbour and 20 through one of them";
  direct.bwIntra = 61;
  EXPECT_EQ(four.faults(direct).size(), 2U) << "to and from the neighbour that relays";
  direct.bwIntra = 10;
  four.add(direct, {0, 1, 2, 3});
  EXPECT_THAT(four.faults(direct), Contains(HasSubstr("its head " + four.gpu(0) + " is another channel's, too")));
}

TEST(ValidateGraph, ChargesTwiceWhatAnNvlsHeadSends) {
  test::Sketch sketch(CpuKind::Amd);
  for (int i = 0; i < 4; ++i) sketch.addGpu(sketch.cpu, 90, 48);
  const int nvSwitch = sketch.machine.addNode(0, 0, NvSwitchFacts{});
  for (const int device : sketch.devices) sketch.machine.connect(device, nvSwitch, LinkKind::NvLink, 100);
  const test::Checked four(sketch);
  Graph nvls = four.graph(GraphId::Nvls, Pattern::Nvls, 20);
  for (std::size_t head = 0; head < 4; ++head) {
    four.add(nvls, {head, (head + 1) % 4, (head + 2) % 4, (head + 3) % 4});
  }
  EXPECT_THAT(four.faults(nvls), IsEmpty());
  nvls.bwIntra = 20.1F;
  EXPECT_EQ(four.faults(nvls).size(), 8U) << "up and down of each";
  EXPECT_THAT(test::Checked(test::fourGpus()).faults(nvls), Contains(HasSubstr("needs an NVSwitch")));
}

TEST(ValidateGraph, ChargesAFifthMoreForPeersAcrossAnIntelHostBridge) {
  for (const CpuKind kind : {CpuKind::IntelSkylake, CpuKind::Amd}) {
    test::Sketch sketch(kind);
    for (int i = 0; i < 2; ++i) sketch.addGpu(sketch.cpu, 80, 12);
    const test::Checked two(sketch);
    Graph ring = two.ring(10);
    ring.typeIntra = PathType::Phb;
    two.add(ring, {0, 1});
    EXPECT_THAT(two.faults(ring), IsEmpty());
    ring.bwIntra = 11;
    const auto faults = two.faults(ring);
    if (kind == CpuKind::Amd) {
      EXPECT_THAT(faults, IsEmpty());
    } else {
      EXPECT_THAT(faults, Contains(HasSubstr("carries 13.200 GB/s and can carry 12.000")));
    }
  }
}

TEST(ValidateGraph, ChargesOldGpusAnEighthBackForWhatNicsWrite) {
  for (const int sm : {70, 80}) {
    test::Sketch sketch(CpuKind::IntelBroadwell);
    sketch.addSwitch(12);
    sketch.addGpu(sketch.switches[0], sm, 12);
    sketch.addNet(sketch.switches[0], 12.5F, {0x100, 1}, 12);
    const test::Checked one(sketch);
    Graph ring = one.ring(10, 10);
    one.add(ring, {0}, 0, 0);
    EXPECT_THAT(one.faults(ring, true), IsEmpty());
    ring.bwInter = 12;
    const auto faults = one.faults(ring, true);
    if (sm == 80) {
      EXPECT_THAT(faults, IsEmpty());
    } else {
      EXPECT_THAT(faults, Contains(HasSubstr("carries 13.500 GB/s and can carry 12.000")));
    }
  }
}

TEST(ValidateGraph, ChargesBothDirectionsForNvLinkIntoAPowerCpu) {
  test::Sketch sketch(CpuKind::Power);
  for (int i = 0; i < 2; ++i) sketch.addGpu(sketch.cpu, 70, 1);
  for (const int device : sketch.devices) sketch.machine.connect(device, sketch.cpu, LinkKind::NvLink, 60);
  const test::Checked two(sketch);
  Graph ring = two.ring(30);
  two.add(ring, {0, 1});
  EXPECT_THAT(two.faults(ring), IsEmpty());
  ring.bwIntra = 31;
  EXPECT_THAT(two.faults(ring), Contains(HasSubstr("carries 62.000 GB/s and can carry 60.000")));
}

/// What routeFault says of a way made by hand.
std::string faultOf(const test::Checked& four, PathType type, std::vector<int> nodes, std::size_t from,
                    std::size_t to) {
  PathTable paths = four.paths;
  const Machine& machine = four.sketch.machine;
  Path path{type, 1, {}};
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    for (int link = 0; link < machine.linkCount(); ++link) {
      if (machine.link(link).from == nodes[i - 1] && machine.link(link).to == nodes[i]) path.links.push_back(link);
    }
  }
  const int start = four.sketch.gpus[from];
  const int end = four.sketch.gpus[to];
  paths.of(start, end) = path;
  return routeFault(machine, paths, Stream{0, start, end, 1, false});
}

TEST(RouteFault, SeesWaysThatBreakOffEndElsewhereOrPretend) {
  const test::Checked four(test::fourGpus());
  const test::Sketch& s = four.sketch;
  const std::vector<int> good{s.gpus[0], s.devices[0], s.devices[1], s.gpus[1]};
  EXPECT_EQ(faultOf(four, PathType::Nvl, good, 0, 1), "");
  EXPECT_THAT(faultOf(four, PathType::Loc, good, 0, 1), HasSubstr("is called LOC, but its links make it NVL"));
  EXPECT_THAT(faultOf(four, PathType::Nvl, {s.gpus[0], s.devices[0], s.devices[1]}, 0, 1),
              HasSubstr("its way ends at"));
  EXPECT_THAT(faultOf(four, PathType::Nvl, {s.gpus[0], s.devices[1], s.gpus[1]}, 0, 1), HasSubstr("breaks off at"));
  EXPECT_THAT(faultOf(four, PathType::Dis, {}, 0, 1), HasSubstr("no way inside the machine (DIS)"));
  const std::vector<int> host{s.gpus[0], s.devices[0], s.switches[0], s.cpu, s.switches[1], s.devices[2], s.gpus[2]};
  EXPECT_EQ(faultOf(four, PathType::Phb, host, 0, 2), "");
  EXPECT_THAT(faultOf(four, PathType::Pxb, host, 0, 2), HasSubstr("its links make it PHB"));
}

TEST(RouteFault, LetsGpusRelayOnlyBetweenNvLinks) {
  const test::Checked four(test::fourGpus());
  const test::Sketch& s = four.sketch;
  const std::vector<int> nvLinks{s.gpus[0], s.devices[0], s.devices[1], s.devices[2], s.gpus[2]};
  EXPECT_EQ(faultOf(four, PathType::Nvb, nvLinks, 0, 2), "");
  EXPECT_THAT(faultOf(four, PathType::Nvl, nvLinks, 0, 2), HasSubstr("passes through"));
  EXPECT_THAT(faultOf(four, PathType::Sys, nvLinks, 0, 2), HasSubstr("passes through"));
  const std::vector<int> pciThenNvLink{s.gpus[0], s.devices[0], s.switches[0], s.devices[1], s.devices[2], s.gpus[2]};
  EXPECT_THAT(faultOf(four, PathType::Nvb, pciThenNvLink, 0, 2), HasSubstr("passes through"));
  const std::vector<int> twoRelays{s.gpus[0], s.devices[0], s.devices[3], s.devices[2], s.devices[1], s.gpus[1]};
  EXPECT_THAT(faultOf(four, PathType::Nvb, twoRelays, 0, 1), HasSubstr("passes through"));
}

TEST(RouteFault, LetsTheLastGpuBeforeANicRelay) {
  const test::Checked four(test::fourGpus());
  const test::Sketch& s = four.sketch;
  PathTable paths = four.paths;
  const int net = s.nets[1];
  Path path = paths.of(s.gpus[2], net);
  ASSERT_EQ(path.type, PathType::Pix);
  const Path toRelay = paths.of(s.gpus[1], s.devices[2]);
  path.links.erase(path.links.begin());
  path.links.insert(path.links.begin(), toRelay.links.begin(), toRelay.links.end());
  path.type = PathType::Pxn;
  paths.of(s.gpus[1], net) = path;
  EXPECT_EQ(routeFault(s.machine, paths, Stream{0, s.gpus[1], net, 1, true}), "");
  paths.of(s.gpus[1], net).type = PathType::Phb;
  EXPECT_THAT(routeFault(s.machine, paths, Stream{0, s.gpus[1], net, 1, true}), HasSubstr("passes through"));
}

}  // namespace
}  // namespace tutti::topo
