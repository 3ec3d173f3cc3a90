#include "topo/machine/paths.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "topo/machine/machine_text.h"
#include "topo/machine/path_settings.h"

namespace tutti::topo {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

struct WithPaths {
  Machine machine;
  PathTable paths;
  explicit WithPaths(Machine m, const PathSettings& settings = {})
      : machine(std::move(m)), paths(shortestPaths(machine, settings)) {}
  int gpu(std::size_t i) const { return test::at(machine, NodeKind::Gpu, i); }
  int net(std::size_t i) const { return test::at(machine, NodeKind::Net, i); }
  const Path& gpus(std::size_t a, std::size_t b) const { return paths.of(gpu(a), gpu(b)); }
  const Path& toNet(std::size_t a, std::size_t b) const { return paths.of(gpu(a), net(b)); }
  /// Sum of the factors on one link.
  float load(int from, int to, int link) const {
    float sum = 0;
    for (const LinkLoad& part : loadsOf(machine, paths, from, to)) sum += part.link == link ? part.factor : 0;
    return sum;
  }
  /// The link out of a GPU's device to what it hangs under, and back.
  int pciOut(std::size_t i) const {
    const int device = machine.facts<GpuFacts>(gpu(i)).device;
    for (const int link : machine.node(device).links) {
      if (machine.link(link).kind == LinkKind::Pci) return link;
    }
    return -1;
  }
  int pciIn(std::size_t i) const { return machine.link(pciOut(i)).reverse; }
};

TEST(Paths, AnNvSwitchJoinsAllGpus) {
  const WithPaths known(test::knownMachine("own_dgx_h100"));
  for (std::size_t a = 0; a < 8; ++a) {
    for (std::size_t b = 0; b < 8; ++b) {
      if (a == b) continue;
      EXPECT_EQ(known.gpus(a, b).type, PathType::Nvl);
      EXPECT_FLOAT_EQ(known.gpus(a, b).bandwidth, 370.8F);
      EXPECT_EQ(known.gpus(a, b).links.size(), 4U);
    }
  }
}

TEST(Paths, GpusThatAreNoNeighboursAreJoinedOverAnother) {
  const Machine machine = test::knownMachine("own_dgx1v");
  const WithPaths known(machine);
  EXPECT_EQ(known.gpus(0, 3).type, PathType::Nvl);
  EXPECT_EQ(known.gpus(0, 3).bandwidth, 40);
  EXPECT_EQ(known.gpus(0, 7).type, PathType::Nvb);
  EXPECT_EQ(known.gpus(0, 7).bandwidth, 40);
  EXPECT_EQ(known.gpus(0, 7).links.size(), 4U);
  PathSettings settings;
  settings.nvbDisabled = true;
  EXPECT_EQ(WithPaths(machine, settings).gpus(0, 7).type, PathType::Sys);
}

TEST(Paths, TypesFollowSwitchesCpusAndSockets) {
  const WithPaths known(test::knownMachine("own_dgx_a100"));
  EXPECT_EQ(known.toNet(0, 0).type, PathType::Pix);
  EXPECT_EQ(known.toNet(0, 1).type, PathType::Pxb);
  EXPECT_EQ(known.toNet(0, 7).type, PathType::Sys);
  const WithPaths direct(test::built(test::system(test::cpu(test::kAmd, test::gpu("11", 0) + test::gpu("12", 1)) +
                                                  test::cpu(test::kAmd, test::gpu("13", 2), 1))));
  EXPECT_EQ(direct.gpus(0, 1).type, PathType::Phb);
  EXPECT_EQ(direct.gpus(0, 2).type, PathType::Sys);
  EXPECT_EQ(direct.gpus(0, 2).bandwidth, 16);
}

TEST(Paths, NothingPassesThroughAGpu) {
  const std::string link = "<nvlink target=\"0000:12:00.0\" count=\"12\" tclass=\"0x030200\"/>";
  const WithPaths two(test::built(
      test::system(test::cpu(test::kAmd, test::gpu("11", 0, link)) +
                   test::cpu(test::kAmd, test::pci("20", test::gpu("12", 1) + test::nic("13", test::net(0))), 1))));
  EXPECT_EQ(two.gpus(0, 1).type, PathType::Nvl);
  EXPECT_EQ(two.toNet(1, 0).type, PathType::Pix);
  EXPECT_EQ(two.toNet(0, 0).type, PathType::Sys);
}

TEST(Paths, RanksOfOneDeviceAreLocal) {
  const WithPaths one(test::built(test::system(test::cpu(
      test::kAmd, test::pci("11", "<gpu dev=\"0\" sm=\"80\" rank=\"0\"/><gpu dev=\"0\" sm=\"80\" rank=\"1\"/>")))));
  EXPECT_EQ(one.gpus(0, 1).type, PathType::Loc);
  EXPECT_EQ(one.gpus(0, 1).bandwidth, 5000);
}

TEST(Paths, HostsWithoutNvlinkAreNotConnected) {
  const WithPaths two(
      test::built(test::system(test::cpu(std::string(test::kAmd) + " host_hash=\"0x1\"", test::gpu("11", 0)) +
                               test::cpu(std::string(test::kAmd) + " host_hash=\"0x2\"", test::gpu("11", 1)))));
  EXPECT_EQ(two.gpus(0, 1).type, PathType::Dis);
}

TEST(Paths, ABestWayNeedNotConsistOfBestWays) {
  // To the CPU the slow C2C is best, for its type; on to the NIC its bandwidth would be a loss for nothing.
  const std::string c2c = "<c2c bw=\"3000\" count=\"1\"/>";
  const WithPaths known(
      test::built(test::system(test::cpu(test::kAmd, test::gpu("11", 0, c2c) + test::nic("12", test::net(0))))));
  const Path& toCpu = known.paths.of(known.gpu(0), test::at(known.machine, NodeKind::Cpu, 0));
  EXPECT_EQ(toCpu.type, PathType::C2c);
  EXPECT_EQ(toCpu.bandwidth, 3);
  EXPECT_EQ(known.toNet(0, 0).type, PathType::Phb);
  EXPECT_EQ(known.toNet(0, 0).bandwidth, 24);
}

TEST(Paths, BandwidthCountsMoreThanHops) {
  Machine machine;
  const int a = machine.addNode(0, 1, SwitchFacts{});
  const int b = machine.addNode(0, 2, SwitchFacts{});
  const int c = machine.addNode(0, 3, SwitchFacts{});
  machine.connect(a, b, LinkKind::Pci, 6);
  machine.connect(a, c, LinkKind::Pci, 24);
  machine.connect(c, b, LinkKind::Pci, 12);
  const PathTable paths = shortestPaths(machine, {});
  EXPECT_EQ(paths.of(a, b).links.size(), 2U);
  EXPECT_EQ(paths.of(a, b).bandwidth, 12);
}

/// The links follow one another, and type and bandwidth are the worst of them.
void expectConsistent(const WithPaths& known, int from, int to) {
  const Path& path = known.paths.of(from, to);
  float least = 5000;
  int where = from;
  for (const int number : path.links) {
    const Link& link = known.machine.link(number);
    EXPECT_EQ(link.from, where);
    where = link.to;
    least = std::min(least, link.bandwidth);
  }
  if (path.type == PathType::Dis) {
    EXPECT_TRUE(path.links.empty());
    return;
  }
  EXPECT_EQ(where, to);
  EXPECT_EQ(path.bandwidth, least);
  EXPECT_EQ(known.paths.of(to, from).type, path.type);
  EXPECT_EQ(known.paths.of(to, from).bandwidth, path.bandwidth);
}

TEST(Paths, LinksOfAPathFollowOneAnotherOnEveryKnownMachine) {
  for (const auto& entry : std::filesystem::directory_iterator(test::fixtures())) {
    if (entry.path().extension() != ".xml") continue;
    SCOPED_TRACE(entry.path());
    const WithPaths known(test::knownMachine(entry.path().stem().string()));
    for (int from = 0; from < known.machine.nodeCount(); ++from) {
      for (int to = 0; to < known.machine.nodeCount(); ++to) expectConsistent(known, from, to);
    }
    if (HasFailure()) return;
  }
}

TEST(Loads, PeerTrafficThroughAnIntelCpuCostsMore) {
  const std::string machine = test::gpu("11", 0) + test::gpu("12", 1) + test::nic("13", test::net(0));
  const WithPaths intel(test::built(test::system(test::cpu(test::kIntel, machine))));
  const WithPaths amd(test::built(test::system(test::cpu(test::kAmd, machine))));
  EXPECT_FLOAT_EQ(intel.load(intel.gpu(0), intel.gpu(1), intel.pciOut(0)), 1.2F);
  EXPECT_FLOAT_EQ(intel.load(intel.gpu(0), intel.gpu(1), intel.pciIn(1)), 1.2F);
  EXPECT_FLOAT_EQ(intel.load(intel.gpu(0), intel.net(0), intel.pciOut(0)), 1.2F);
  EXPECT_FLOAT_EQ(intel.load(intel.net(0), intel.gpu(0), intel.pciIn(0)), 1);
  EXPECT_FLOAT_EQ(amd.load(amd.gpu(0), amd.gpu(1), amd.pciOut(0)), 1);
}

TEST(Loads, LongerAndShorterWaysThroughIntelCostWhatTheyCarry) {
  const WithPaths intel(
      test::built(test::system(test::cpu(test::kIntel, test::pci("10", test::gpu("11", 0) + test::gpu("12", 1))) +
                               test::cpu(test::kIntel, test::gpu("13", 2), 1))));
  EXPECT_FLOAT_EQ(intel.load(intel.gpu(0), intel.gpu(1), intel.pciOut(0)), 1);
  EXPECT_FLOAT_EQ(intel.load(intel.gpu(0), intel.gpu(2), intel.pciOut(0)), 1);
}

TEST(Loads, NicsWritingToOldGpusAlsoCostTheWayBack) {
  const auto back = [](int sm, bool fromNet) {
    const WithPaths known(test::built(test::system(test::cpu(
        test::kAmd, test::gpu("11", 0, "", sm) + test::gpu("12", 1, "", sm) + test::nic("13", test::net(0))))));
    return known.load(fromNet ? known.net(0) : known.gpu(1), known.gpu(0), known.pciOut(0));
  };
  EXPECT_FLOAT_EQ(back(70, true), 0.125F);
  EXPECT_FLOAT_EQ(back(70, false), 0);
  EXPECT_FLOAT_EQ(back(80, true), 0);
}

TEST(Loads, NvlinkIntoPowerCostsBothDirections) {
  const WithPaths power(test::knownMachine("own_ac922_4gpu"));
  const int device = power.machine.facts<GpuFacts>(power.gpu(0)).device;
  const int link = power.machine.findLink(device, test::at(power.machine, NodeKind::Cpu, 0), LinkKind::NvLink);
  ASSERT_GE(link, 0);
  EXPECT_FLOAT_EQ(power.load(power.gpu(0), power.gpu(2), link), 1);
  EXPECT_FLOAT_EQ(power.load(power.gpu(0), power.gpu(2), power.machine.link(link).reverse), 1);
  EXPECT_FLOAT_EQ(power.load(power.gpu(2), power.gpu(0), link), 0);
}

TEST(LocalNics, AreTheFastestAndAmongThemTheNearest) {
  const WithPaths known(test::knownMachine("own_dgx_a100"));
  EXPECT_EQ(localNets(known.machine, known.paths, known.gpu(1)), std::vector<int>{known.net(1)});
  EXPECT_EQ(localGpus(known.machine, known.paths, known.net(1)), std::vector<int>{known.gpu(1)});
  const WithPaths one(test::knownMachine("own_h100_1nic"));
  EXPECT_EQ(localNets(one.machine, one.paths, one.gpu(5)), std::vector<int>{one.net(0)});
}

TEST(LocalNics, AreGivenToChannelsInTurn) {
  // Two GPUs near four NICs: each GPU has two of them.
  const WithPaths known(test::built(
      test::system(test::cpu(test::kAmd, test::pci("10", test::gpu("11", 0) + test::gpu("12", 1) +
                                                             test::nic("13", test::net(0) + test::net(1)) +
                                                             test::nic("14", test::net(2) + test::net(3)))))));
  const auto dev = [&](std::size_t gpu, int channel, int netsPerGpu = 0) {
    const int net = netOfChannel(known.machine, known.paths, known.gpu(gpu), channel, netsPerGpu);
    return known.machine.facts<NetFacts>(net).dev;
  };
  EXPECT_EQ(dev(0, 0), 0);
  EXPECT_EQ(dev(0, 1), 1);
  EXPECT_EQ(dev(0, 2), 0);
  EXPECT_EQ(dev(1, 0), 2);
  EXPECT_EQ(dev(1, 1), 3);
  EXPECT_EQ(dev(1, 1, 1), 2) << "one only";
  EXPECT_EQ(dev(0, 3, std::numeric_limits<int>::max()), 3) << "all of them";
  EXPECT_EQ(dev(0, 4, std::numeric_limits<int>::max()), 0);
  const WithPaths none(test::built(test::system(test::cpu(test::kAmd, test::gpu("11", 0)))));
  EXPECT_EQ(netOfChannel(none.machine, none.paths, none.gpu(0), 0), -1);
}

TEST(MachineBandwidth, IsTheBestPathAndTheBestGpu) {
  const WithPaths known(test::knownMachine("own_dgx1v"));
  const MachineBandwidth inside = machineBandwidth(known.machine, known.paths, false);
  EXPECT_EQ(inside.best, 40);
  EXPECT_EQ(inside.total, 120);
  EXPECT_EQ(machineBandwidth(known.machine, known.paths, true).best, 12);
  const WithPaths single(test::knownMachine("own_single_gpu_pcie"));
  EXPECT_EQ(machineBandwidth(single.machine, single.paths, false).best, 5000);
  EXPECT_EQ(machineBandwidth(single.machine, single.paths, false).total, 5000);
  EXPECT_EQ(machineBandwidth(single.machine, single.paths, true).best, 12.5F);
  EXPECT_EQ(machineBandwidth(single.machine, single.paths, true).total, 24);
}

}  // namespace
}  // namespace tutti::topo
