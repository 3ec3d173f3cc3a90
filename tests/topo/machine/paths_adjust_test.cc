#include "topo/machine/paths_adjust.h"

#include <ctime>

#include "support/log_capture.h"
#include "topo/machine/machine_text.h"
#include "topo/machine/path_settings.h"
#include "topo/xml/values.h"

namespace tutti::topo {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

struct Adjusted {
  Machine machine;
  PathTable paths{0};
  explicit Adjusted(Machine m, const PathSettings& settings = {}) : machine(std::move(m)) {
    auto computed = computePaths(machine, settings);
    EXPECT_TRUE(computed.ok());
    if (computed.ok()) paths = std::move(computed).value();
  }
  int gpu(std::size_t i) const { return test::at(machine, NodeKind::Gpu, i); }
  int net(std::size_t i) const { return test::at(machine, NodeKind::Net, i); }
  const Path& gpus(std::size_t a, std::size_t b) const { return paths.of(gpu(a), gpu(b)); }
  PathType toNet(std::size_t a, std::size_t b) const { return paths.of(gpu(a), net(b)).type; }
  PathType fromNet(std::size_t a, std::size_t b) const { return paths.of(net(b), gpu(a)).type; }
  bool passes(const Path& path, NodeKind kind) const {
    for (const int link : path.links) {
      if (machine.node(machine.link(link).to).kind() == kind) return true;
    }
    return false;
  }
};

Machine twoGpusOfASwitch() {
  return test::built(test::system(test::cpu(test::kIntel, test::pci("10", test::gpu("11", 0) + test::gpu("12", 1)))));
}

TEST(P2p, GoesAsFarAsItsLevel) {
  EXPECT_EQ(Adjusted(twoGpusOfASwitch()).gpus(0, 1).type, PathType::Pix);
  PathSettings settings;
  settings.p2pLevel = PathType::Nvl;
  const Adjusted nvlinkOnly(twoGpusOfASwitch(), settings);
  EXPECT_EQ(nvlinkOnly.gpus(0, 1).type, PathType::Phb);
  EXPECT_TRUE(nvlinkOnly.passes(nvlinkOnly.gpus(0, 1), NodeKind::Cpu));
  settings.p2pLevel.reset();
  settings.p2pDisabled = true;
  EXPECT_EQ(Adjusted(twoGpusOfASwitch(), settings).gpus(0, 1).type, PathType::Phb);
}

TEST(P2p, DefaultLevelDependsOnTheCpu) {
  const auto level = [](const char* name) { return p2pLevel(test::knownMachine(name), {}); };
  EXPECT_EQ(level("own_ws_pcie2_intel"), PathType::Pxb);
  EXPECT_EQ(level("own_ws_pcie2_amd"), PathType::Sys);
  EXPECT_EQ(level("own_ws_pcie4_amd"), PathType::Pxb);
}

TEST(P2p, WithoutItTheWayLeadsThroughTheCpuOfTheDestination) {
  PathSettings settings;
  settings.p2pDisabled = true;
  settings.netDisableIntra = true;
  const Adjusted known(test::knownMachine("own_dgx_h100"), settings);
  EXPECT_EQ(known.gpus(0, 1).type, PathType::Phb);
  EXPECT_EQ(known.gpus(0, 7).type, PathType::Sys);
  EXPECT_FALSE(known.passes(known.gpus(0, 7), NodeKind::NvSwitch));
}

/// What NVML says against the i-th and j-th device of a machine.
PeerRefusal refusal(const Machine& machine, std::size_t i, std::size_t j) {
  const auto busId = [&](std::size_t device) { return machine.node(test::at(machine, NodeKind::Device, device)).id; };
  return {busId(i), busId(j), "chipset not supported"};
}

TEST(P2p, IsNotUsedWhereNvmlRefusesIt) {
  const Machine machine = test::knownMachine("own_rtx3090_x2_nvlink");
  PathSettings settings;
  settings.p2p.refused = {refusal(machine, 1, 0)};
  settings.p2p.host = "gpu07";
  const std::string one = busIdText(settings.p2p.refused[0].from);
  const std::string other = busIdText(settings.p2p.refused[0].to);
  test::expectLog("NVML on host gpu07 says that GPU 1 (" + one + ") cannot access GPU 0 (" + other +
                  ") directly, chipset not supported, although NVLink joins them");
  EXPECT_EQ(computePaths(machine, settings).status().code(), ncclUnhandledCudaError);
  settings.p2p.ignore = 1;
  const Adjusted overCpu(machine, settings);
  EXPECT_EQ(overCpu.gpus(0, 1).type, PathType::Nvl);
  EXPECT_GE(overCpu.gpus(1, 0).type, PathType::Phb);
  settings.p2p.ignore = 2;
  EXPECT_EQ(Adjusted(machine, settings).gpus(1, 0).type, PathType::Nvl);
}

TEST(P2p, OverAnotherGpuNeedsBothHops) {
  const Machine machine = test::knownMachine("own_dgx1v");
  const Adjusted whole(machine);
  ASSERT_EQ(whole.gpus(0, 7).type, PathType::Nvb);
  const int middle = machine.link(whole.gpus(0, 7).links[1]).to;
  PathSettings settings;
  settings.p2p.ignore = 1;
  settings.p2p.refused = {{machine.node(middle).id, machine.node(test::at(machine, NodeKind::Device, 7)).id, ""}};
  EXPECT_GE(Adjusted(machine, settings).gpus(0, 7).type, PathType::Phb);
}

TEST(P2p, IsRefusedInsideHostsOnlyThoughOthersHaveTheSameBusIds) {
  const Topology domain = test::topologyOf("own_gb200_tray", {.hosts = 2});
  PathSettings settings;
  settings.p2p.ignore = 1;
  settings.p2p.refused = {refusal(domain.machine, 0, 1)};
  const Adjusted known(domain.machine, settings);
  const std::size_t perHost = domain.machine.nodes(NodeKind::Gpu).size() / 2;
  EXPECT_GT(known.gpus(0, 1).type, PathType::Nvl);
  EXPECT_EQ(known.gpus(1, 0).type, PathType::Nvl) << "the other direction";
  EXPECT_EQ(known.gpus(0, perHost + 1).type, PathType::Nvl) << "a GPU of the other host";
}

TEST(Groups, GpusThatNeitherP2pNorShmJoinsAreJoinedByTheNetwork) {
  PathSettings settings;
  settings.p2pDisabled = true;
  settings.shmDisabled = true;
  const Adjusted known(test::knownMachine("own_dgx_h100"), settings);
  EXPECT_EQ(known.gpus(0, 1).type, PathType::Net);
  EXPECT_TRUE(known.gpus(0, 1).links.empty());
  settings.p2pDisabled = false;
  EXPECT_EQ(Adjusted(test::knownMachine("own_dgx_h100"), settings).gpus(0, 1).type, PathType::Nvl);
}

TEST(Groups, TheNetworkIsTakenWhereItIsFaster) {
  const Machine machine = test::knownMachine("own_pcie8_l40s_2switch_4nic");
  const Adjusted known(machine);
  EXPECT_EQ(known.gpus(0, 1).type, PathType::Pix);
  EXPECT_EQ(known.gpus(0, 4).type, PathType::Net);
  PathSettings settings;
  settings.netDisableIntra = true;
  EXPECT_EQ(Adjusted(machine, settings).gpus(0, 4).type, PathType::Sys);
}

TEST(C2c, NicsOfTheCpuThatItJoinsAreNear) {
  const Adjusted known(test::knownMachine("own_gb200_tray"));
  EXPECT_EQ(known.toNet(0, 0), PathType::P2c);
  EXPECT_EQ(known.fromNet(0, 1), PathType::P2c);
  EXPECT_EQ(known.fromNet(0, 2), PathType::Sys);
}

TEST(C2c, IsOnTheWaysThatAreCalledByIt) {
  // A C2C link that is slower than PCI is the nearest way to the CPU, but not the one to a NIC.
  const Adjusted known(
      test::built(test::system(test::cpu(test::kIntel, test::gpu("11", 0, "<c2c bw=\"1000\" count=\"1\"/>") +
                                                           test::gpu("12", 1) + test::nic("21", test::net(0))))));
  EXPECT_EQ(known.toNet(0, 0), PathType::Phb);
  EXPECT_EQ(known.fromNet(0, 0), PathType::Phb);
}

TEST(C2c, WithoutGdrTheWayLeadsThroughIt) {
  const Adjusted known(test::knownMachine("own_gb10_spark"));
  EXPECT_EQ(known.toNet(0, 0), PathType::P2c);
  EXPECT_EQ(known.fromNet(0, 0), PathType::P2c);
  Path c2c;
  c2c.type = PathType::C2c;
  Path phb;
  phb.type = PathType::Phb;
  EXPECT_EQ(joinPaths(c2c, phb).type, PathType::P2c);
  EXPECT_EQ(joinPaths(phb, c2c).type, PathType::P2c);
  EXPECT_EQ(joinPaths(c2c, c2c).type, PathType::C2c);
  EXPECT_EQ(joinPaths(phb, Path{}).type, PathType::Dis);
}

TEST(Pxn, LeadsThroughTheGpuThatTheNicIsFor) {
  const Adjusted known(test::knownMachine("own_dgx_h100"));
  EXPECT_EQ(known.toNet(0, 0), PathType::Pix);
  EXPECT_EQ(known.toNet(0, 7), PathType::Pxn);
  EXPECT_EQ(known.fromNet(0, 7), PathType::Sys);
  const Path& path = known.paths.of(known.gpu(0), known.net(7));
  EXPECT_EQ(path.bandwidth, 48);
  EXPECT_TRUE(known.passes(path, NodeKind::NvSwitch));
  EXPECT_FALSE(known.passes(path, NodeKind::Cpu));
}

TEST(Pxn, NamesTheGpuOnTheWay) {
  const Adjusted known(test::knownMachine("own_dgx_h100"));
  EXPECT_EQ(relayOnWay(known.machine, known.paths, known.gpu(0), known.net(7)), known.gpu(7));
  EXPECT_EQ(relayOnWay(known.machine, known.paths, known.gpu(0), known.net(0)), -1) << "it is near by itself";
}

TEST(Pxn, CanBeForbidden) {
  PathSettings settings;
  settings.pxnDisabled = true;
  EXPECT_EQ(Adjusted(test::knownMachine("own_dgx_h100"), settings).toNet(0, 7), PathType::Sys);
  PathSettings noC2c;
  noC2c.pxnOverC2c = false;
  EXPECT_EQ(Adjusted(test::knownMachine("own_gb200_tray")).toNet(0, 2), PathType::Pxn);
  EXPECT_EQ(Adjusted(test::knownMachine("own_gb200_tray"), noC2c).toNet(0, 2), PathType::Sys);
}

TEST(Pxn, LooksForRelaysOnceForEachGpu) {
  // One NIC is the best of all GPUs, so that nobody is there for the others.
  std::string parts = test::pci("10", "<nic>" + test::net(0) + "</nic>");
  std::string slow;
  for (int i = 1; i < 600; ++i) slow += "<net dev=\"" + std::to_string(i) + "\" speed=\"100000\"/>";
  parts += test::pci("11", "<nic>" + slow + "</nic>");
  for (int i = 0; i < 8; ++i) parts += test::gpu(std::to_string(20 + i), i);
  const Machine machine = test::built(test::system(test::cpu(test::kIntel, parts)));
  const std::clock_t start = std::clock();
  const Adjusted adjusted(machine);
  EXPECT_LT(std::clock() - start, 2 * CLOCKS_PER_SEC) << "of processor time; a moment is usual";
  EXPECT_EQ(adjusted.toNet(0, 599), PathType::Phb);
}

TEST(Pxn, NeedsAnNvlink) {
  const Adjusted known(test::knownMachine("own_a100pcie_x8_pairs_amd"));
  int relayed = 0;
  for (const int gpu : known.machine.nodes(NodeKind::Gpu)) {
    for (const int net : known.machine.nodes(NodeKind::Net)) {
      const Path& path = known.paths.of(gpu, net);
      if (path.type != PathType::Pxn) continue;
      ++relayed;
      EXPECT_EQ(known.machine.link(path.links[1]).kind, LinkKind::NvLink);
    }
  }
  EXPECT_LT(relayed, 8);
}

TEST(Gdr, WithoutItTheWayLeadsThroughTheCpu) {
  PathSettings settings;
  settings.gdrLevel = PathType::Loc;
  const Adjusted known(test::knownMachine("own_dgx_h100"), settings);
  EXPECT_EQ(known.toNet(0, 0), PathType::Phb);
  EXPECT_EQ(known.fromNet(0, 0), PathType::Phb);
  EXPECT_TRUE(known.passes(known.paths.of(known.gpu(0), known.net(0)), NodeKind::Cpu));
}

TEST(Gdr, OverC2cCanBeForbidden) {
  PathSettings settings;
  settings.gdrOverC2c = false;
  EXPECT_EQ(gdrLevel(settings), PathType::Pxb);
  EXPECT_EQ(gdrLevel({}), PathType::P2c);
  settings.gdrLevel = PathType::Sys;
  EXPECT_EQ(gdrLevel(settings), PathType::Sys);
}

TEST(Gdr, ReadingNeedsAmpereOrNvlink) {
  PathSettings settings;
  const auto usable = [&settings](const char* name, bool read) {
    const Adjusted known(test::knownMachine(name));
    return gdrUsable(known.machine, known.paths, settings, {known.gpu(0), known.net(0), read, PathType::Pix});
  };
  EXPECT_TRUE(usable("own_pcie8_v100_switch_1nic", false));
  EXPECT_FALSE(usable("own_pcie8_v100_switch_1nic", true));
  EXPECT_TRUE(usable("own_dgx1v", true));
  EXPECT_TRUE(usable("own_pcie8_l40s_2switch_4nic", true));
  settings.gdrRead = 1;
  EXPECT_TRUE(usable("own_pcie8_v100_switch_1nic", true));
  settings.gdrRead = 0;
  EXPECT_FALSE(usable("own_dgx1v", true));
  EXPECT_TRUE(usable("own_dgx1v", false));
}

TEST(Gdr, SaysWhyItDoesNotWork) {
  const auto verdict = [](const std::string& machine, const PathSettings& settings, bool read = false,
                          PathType distance = PathType::Pix) {
    const Adjusted known(test::built(test::system(test::cpu(test::kAmd, machine))));
    return judgeGdr(known.machine, known.paths, settings, {known.gpu(0), known.net(0), read, distance});
  };
  const std::string nic = test::nic("12", test::net(0));
  const std::string old = test::pci("11", "<gpu dev=\"0\" sm=\"70\" rank=\"0\" gdr=\"1\"/>") +
                          test::pci("13", "<gpu dev=\"1\" sm=\"70\" rank=\"1\" gdr=\"1\"/>");
  EXPECT_EQ(verdict(test::gpu("11", 0) + nic, {}), GdrVerdict::Usable);
  EXPECT_EQ(verdict(test::pci("11", "<gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"0\"/>") + nic, {}),
            GdrVerdict::GpuCannot);
  EXPECT_EQ(verdict(test::pci("11", "<gpu dev=\"0\" sm=\"100\" rank=\"0\" mlopart=\"0\" gdr=\"1\"/>") + nic, {}),
            GdrVerdict::Divided);
  EXPECT_EQ(verdict(test::gpu("11", 0) + test::nic("12", "<net dev=\"0\"/>"), {}), GdrVerdict::NicCannot);
  EXPECT_EQ(verdict(test::gpu("11", 0) + nic, {}, false, PathType::Phb), GdrVerdict::TooFar);
  EXPECT_EQ(verdict(test::gpu("11", 0) + nic, {.gdrRead = 0}, true), GdrVerdict::ReadOff);
  EXPECT_EQ(verdict(old + nic, {}, true), GdrVerdict::ReadSlow);
  EXPECT_EQ(verdict(old + nic, {}, false), GdrVerdict::Usable);
  EXPECT_EQ(gdrVerdictText(GdrVerdict::Usable), "");
  for (const GdrVerdict why : {GdrVerdict::GpuCannot, GdrVerdict::Divided, GdrVerdict::NicCannot, GdrVerdict::TooFar,
                               GdrVerdict::ReadOff, GdrVerdict::ReadSlow}) {
    EXPECT_NE(gdrVerdictText(why), "");
  }
}

TEST(Gdr, NeedsGpuAndNicThatCan) {
  const auto usable = [](const std::string& machine) {
    const Adjusted known(test::built(test::system(test::cpu(test::kAmd, machine))));
    return gdrUsable(known.machine, known.paths, {}, {known.gpu(0), known.net(0), false, PathType::Phb});
  };
  const PathSettings far{.gdrLevel = PathType::Sys};
  const Adjusted near(
      test::built(test::system(test::cpu(test::kAmd, test::gpu("11", 0) + test::nic("12", test::net(0))))));
  EXPECT_TRUE(gdrUsable(near.machine, near.paths, far, {near.gpu(0), near.net(0), false, PathType::Phb}));
  EXPECT_FALSE(usable(test::gpu("11", 0) + test::nic("12", test::net(0))));
  const Adjusted noNic(
      test::built(test::system(test::cpu(test::kAmd, test::gpu("11", 0) + test::nic("12", "<net dev=\"0\"/>")))));
  EXPECT_FALSE(gdrUsable(noNic.machine, noNic.paths, far, {noNic.gpu(0), noNic.net(0), false, PathType::Pix}));
  const std::string part = test::pci("11", "<gpu dev=\"0\" sm=\"100\" rank=\"0\" mlopart=\"0\" gdr=\"1\"/>");
  const Adjusted partition(test::built(test::system(test::cpu(test::kAmd, part + test::nic("12", test::net(0))))));
  EXPECT_FALSE(
      gdrUsable(partition.machine, partition.paths, far, {partition.gpu(0), partition.net(0), false, PathType::Pix}));
}

}  // namespace
}  // namespace tutti::topo
