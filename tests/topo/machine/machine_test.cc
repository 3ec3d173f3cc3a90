#include "topo/machine/machine.h"

#include <gtest/gtest.h>

#include "topo/machine/path_type.h"

namespace tutti::topo {
namespace {

struct TwoNodes {
  Machine machine;
  int a = machine.addNode(0, 1, DeviceFacts{});
  int b = machine.addNode(0, 2, DeviceFacts{});
};

TEST(Machine, LinksKnowTheirWayBack) {
  TwoNodes two;
  two.machine.connect(two.a, two.b, LinkKind::NvLink, 20, true);
  const int there = two.machine.findLink(two.a, two.b, LinkKind::NvLink);
  ASSERT_GE(there, 0);
  EXPECT_EQ(two.machine.link(there).reverse, -1);
  two.machine.connect(two.b, two.a, LinkKind::NvLink, 40, true);
  const int back = two.machine.link(there).reverse;
  ASSERT_GE(back, 0);
  EXPECT_EQ(two.machine.link(back).reverse, there);
  EXPECT_EQ(two.machine.link(there).bandwidth, 20);
  EXPECT_EQ(two.machine.link(back).bandwidth, 40);
}

TEST(Machine, LinksOfOneKindAddUpAndKindsStayApart) {
  TwoNodes two;
  two.machine.connect(two.a, two.b, LinkKind::NvLink, 20);
  two.machine.connect(two.a, two.b, LinkKind::NvLink, 20);
  two.machine.connect(two.a, two.b, LinkKind::Pci, 12);
  EXPECT_EQ(two.machine.linkCount(), 4);
  EXPECT_EQ(two.machine.link(two.machine.findLink(two.b, two.a, LinkKind::NvLink)).bandwidth, 40);
  EXPECT_EQ(two.machine.link(two.machine.findLink(two.b, two.a, LinkKind::Pci)).bandwidth, 12);
}

TEST(Machine, FastLinksComeFirstAndUplinksOfSwitchesLast) {
  Machine machine;
  const int cpu = machine.addNode(0, 0, CpuFacts{});
  const int upper = machine.addNode(0, 0x10, SwitchFacts{});
  machine.connect(upper, cpu, LinkKind::Pci, 48);
  const int slow = machine.addNode(0, 0x11, DeviceFacts{});
  machine.connect(slow, upper, LinkKind::Pci, 12);
  const int lower = machine.addNode(0, 0x12, SwitchFacts{});
  machine.connect(lower, upper, LinkKind::Pci, 24);
  machine.sortLinks();
  std::vector<int> order;
  for (const int link : machine.node(upper).links) order.push_back(machine.link(link).to);
  EXPECT_EQ(order, (std::vector<int>{lower, slow, cpu}));
}

TEST(Machine, NamesNodesByKindSystemAndId) {
  Machine machine;
  const int gpu = machine.addNode(2, 0x1b000, GpuFacts{});
  const int nvSwitch = machine.addNode(0, 0, NvSwitchFacts{});
  EXPECT_EQ(nodeName(machine, gpu), "GPU/2-1b000");
  EXPECT_EQ(nodeName(machine, nvSwitch), "NVS/0-0");
  EXPECT_EQ(machine.systems(), 3);
}

TEST(Machine, TheFirstCpuDecides) {
  Machine machine;
  machine.addNode(0, 0, CpuFacts{CpuKind::Power, 0, ""});
  machine.addNode(0, 1, CpuFacts{CpuKind::Amd, 1, ""});
  EXPECT_EQ(machine.cpuKind(), CpuKind::Power);
}

TEST(PathTypes, NamesAreReadAsTheyAreWritten) {
  for (int i = 0; i <= static_cast<int>(PathType::Dis); ++i) {
    const auto type = static_cast<PathType>(i);
    EXPECT_EQ(parsePathType(pathTypeName(type)), type);
  }
  EXPECT_FALSE(parsePathType("nvl").has_value());
  EXPECT_FALSE(parsePathType("").has_value());
}

}  // namespace
}  // namespace tutti::topo
