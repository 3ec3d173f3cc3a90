#include "transport/net/ib/nic/devices.h"

#include <cerrno>
#include <utility>

#include "base/settings/params.h"
#include "plugin/network/net.h"
#include "support/log_capture.h"
#include "transport/net/ib/ib_pair.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/nic/verbs.h"

namespace tutti::net::ib {
namespace {

using namespace test;

class IbSearchTest : public VerbsTest {
 protected:
  IbSearch search(const std::string& hca = "", IbOptions options = ibOptions(verbsParams(), -1)) {
    options.hca = hca;
    std::string why;
    const Verbs* const verbs = openVerbs(tuttiFakeVerbs()->file(), &why);
    EXPECT_NE(verbs, nullptr) << why;
    auto found = searchIbPorts(*verbs, options, sysfs->folder());
    EXPECT_TRUE(found.ok());
    return found.ok() ? std::move(found).value() : IbSearch();
  }
  static std::string namesOf(const IbSearch& found) {
    std::string all;
    for (const IbPort& port : found.ports) all += port.text() + " ";
    return all;
  }
};

/// A NIC of two ports, or one of two functions of such a NIC.
FakeNic cardNic(const std::string& name, const std::string& pci, int ports, std::uint64_t guid) {
  FakeNic nic{.name = name, .pci = pci, .guid = guid};
  nic.ports.resize(static_cast<std::size_t>(ports));
  return nic;
}

TEST(IbSpeed, IsThatOfTheLowestBits) {
  EXPECT_EQ(portSpeedMbps(32, 2), 100000) << "EDR, four lanes";
  EXPECT_EQ(portSpeedMbps(64, 2), 200000) << "HDR";
  EXPECT_EQ(portSpeedMbps(128, 2), 400000) << "NDR";
  EXPECT_EQ(portSpeedMbps(1, 1), 2500);
  EXPECT_EQ(portSpeedMbps(2, 8), 60000);
  EXPECT_EQ(portSpeedMbps(4, 16), 20000) << "two lanes";
  EXPECT_EQ(portSpeedMbps(8 | 32, 1 | 2), 10000);
  EXPECT_EQ(portSpeedMbps(1u << 20, 1u << 20), 400000) << "unknown bits: the last of both tables";
  EXPECT_EQ(portSpeedMbps(0, 0), 400000);
}

TEST(IbCard, HasOnePathForAllItsFunctions) {
  EXPECT_EQ(cardPath("/sys/devices/pci0000:17/0000:17:00.1", false), "/sys/devices/pci0000:17/0000:17:00.0");
  EXPECT_EQ(cardPath("/sys/devices/pci0000:17/0000:17:02.5", false), "/sys/devices/pci0000:17/0000:17:02.0");
  EXPECT_EQ(cardPath("/sys/devices/pci0000:17/0000:17:02.5", true), "/sys/devices/pci0000:17/0000:17:00.0");
  EXPECT_EQ(cardPath("", true), "");
  EXPECT_EQ(cardPath("/sys/devices/virtual/net", true), "/sys/devices/virtual/net");
}

TEST_F(IbSearchTest, ListsPortsByBusWithThoseOfNoneLast) {
  plug({cardNic("c", "", 1, 1), cardNic("b", "0000:41:00.0", 1, 2), cardNic("a", "0000:17:00.1", 1, 3),
        cardNic("d", "0000:17:00.0", 2, 3)});
  EXPECT_EQ(namesOf(search()), "d:1 d:2 a:1 b:1 c:1 ");
}

TEST_F(IbSearchTest, NumbersThePortsOfOneCard) {
  plug({cardNic("a", "0000:17:00.0", 1, 3), cardNic("b", "0000:17:00.1", 1, 3), cardNic("c", "0000:41:00.0", 2, 4),
        cardNic("d", "", 1, 5), cardNic("e", "", 1, 6)});
  const IbSearch found = search();
  std::vector<int> places;
  for (const IbPort& port : found.ports) places.push_back(port.place);
  EXPECT_EQ(places, (std::vector<int>{1, 2, 1, 3, 1, 1}));
  EXPECT_EQ(found.ports[0].pciPath, found.ports[1].pciPath);
  EXPECT_NE(found.ports[0].pciPath, found.ports[2].pciPath);
}

TEST_F(IbSearchTest, LeavesOutWhatTheListDoesNotChoose) {
  EXPECT_EQ(namesOf(search("=a1,b0,b1")), "a1:1 b0:1 b1:1 ");
  EXPECT_EQ(tuttiFakeVerbs()->counts(), FakeCounts()) << "all were closed with their ports";
}

TEST_F(IbSearchTest, KeepsOpenOnlyNicsOfWhichAPortIsUsed) {
  const std::vector<IbPort> ports = search("=a1").ports;
  EXPECT_EQ(tuttiFakeVerbs()->counts().contexts, 1);
  EXPECT_EQ(tuttiFakeVerbs()->counts().lists, 0);
}

TEST_F(IbSearchTest, SaysWhyPortsAreNotUsed) {
  auto nics = fourNics();
  nics[0].ports[0].state = IBV_PORT_DOWN;
  nics[1].openError = EACCES;
  plug(nics);
  const IbSearch found = search();
  EXPECT_EQ(namesOf(found), "b0:1 b1:1 ");
  ASSERT_EQ(refusalsOf(found).size(), 2u);
  EXPECT_EQ(refusalsOf(found)[0],
            "a0:1: the port is not active: it is DOWN: look at the cable, the switch and ip link");
  EXPECT_NE(refusalsOf(found)[1].find("a1: ibv_open_device: Permission denied"), std::string::npos)
      << refusalsOf(found)[1];
}

TEST_F(IbSearchTest, UsesActivePortsAloneAndSaysOfOthersWhatTheyAre) {
  const std::pair<ibv_port_state, std::string> states[] = {
      {IBV_PORT_NOP, "its state is 0, which is none: look at dmesg"},
      {IBV_PORT_DOWN, "it is DOWN: look at the cable, the switch and ip link"},
      {IBV_PORT_INIT,
       "it is in the state INIT: its link stands, and no subnet manager has set it up. Does opensm run?"},
      {IBV_PORT_ARMED,
       "it is in the state ARMED: the subnet manager has set it up and not activated it. Look at its log"},
      {IBV_PORT_ACTIVE, ""},
      {IBV_PORT_ACTIVE_DEFER,
       "it is in the state ACTIVE_DEFER: its link has just failed. Look at the cable and the switch"},
      {static_cast<ibv_port_state>(7), "its state is 7, which is none: look at dmesg"}};
  for (const auto& [state, text] : states) {
    SCOPED_TRACE(state);
    auto nics = fourNics();
    nics[0].ports[0].state = state;
    plug(nics);
    const IbSearch found = search();
    EXPECT_EQ(namesOf(found), state == IBV_PORT_ACTIVE ? "a0:1 a1:1 b0:1 b1:1 " : "a1:1 b0:1 b1:1 ");
    const std::vector<std::string> refused(text.empty() ? 0 : 1, "a0:1: the port is not active: " + text);
    EXPECT_EQ(refusalsOf(found), refused);
  }
}

TEST_F(IbSearchTest, SaysOfEveryPortWhatBecameOfIt) {
  auto nics = fourNics();
  nics[0].ports[0].state = IBV_PORT_INIT;
  nics[2].openError = EACCES;
  plug(nics);
  const IbSearch found = search("a,b1:2,b0");
  ASSERT_EQ(found.seen.size(), 4u);
  EXPECT_EQ(found.seen[0].ports.at(0).use, PortUse::NotActive);
  EXPECT_EQ(found.seen[0].ports.at(0).attributes->state, IBV_PORT_INIT);
  EXPECT_EQ(found.seen[1].ports.at(0).use, PortUse::Used);
  EXPECT_EQ(found.seen[1].ports.at(0).chosenBy, "a");
  EXPECT_EQ(found.seen[2].nic, nullptr);
  EXPECT_TRUE(found.seen[2].why.starts_with("ibv_open_device: Permission denied")) << found.seen[2].why;
  EXPECT_EQ(found.seen[3].ports.at(0).use, PortUse::NotChosen);
  EXPECT_EQ(found.seen[3].ports.at(0).attributes->state, IBV_PORT_ACTIVE) << "it is looked at nevertheless";
  EXPECT_EQ(refusalsOf(found).size(), 2u) << "what is not chosen is no refusal";
}

/// Texts of the entries of a port, and how many questions they took.
std::pair<std::string, int> gidsOf(const Nic& nic, int port) {
  const int before = tuttiFakeVerbs()->calls("ibv_query_gid");
  std::string text;
  for (const GidEntry& entry : nic.gids(port, nic.queryPort(port)->gid_tbl_len)) {
    text += std::to_string(entry.index) + " " + gidText(entry.gid) + " v" + std::to_string(entry.roceVersion) + "; ";
  }
  return {text, tuttiFakeVerbs()->calls("ibv_query_gid") - before};
}

TEST_F(IbSearchTest, ReadsTheSameTableAtOnceAndEntryByEntry) {
  FakeNic one = roceNic("a0", 1);
  one.ports[0].gids.insert(one.ports[0].gids.begin() + 1, {"", 2});
  one.ports[0].gids.resize(300);
  one.ports[0].gids[255] = {"::ffff:10.0.0.55", 2};
  one.ports[0].gids[256] = {"::ffff:10.0.0.56", 2};
  one.ports.push_back(roceNic("a0", 9).ports[0]);
  FakeNic other = one;
  other.name = "a1";
  other.gidTables = true;
  plug({one, other});
  const IbSearch found = search();
  const auto slow = gidsOf(*found.seen[0].nic, 1);
  EXPECT_EQ(slow.first,
            "0 fe80::1 v1; 2 fe80::1 v2; 3 ::ffff:10.0.0.1 v1; 4 ::ffff:10.0.0.1 v2; 255 ::ffff:10.0.0.55 v2; ");
  EXPECT_EQ(slow.second, 256);
  EXPECT_EQ(gidsOf(*found.seen[1].nic, 1), std::pair(slow.first, 0));
  EXPECT_EQ(gidsOf(*found.seen[1].nic, 2).first, gidsOf(*found.seen[0].nic, 2).first);
}

TEST_F(IbSearchTest, SaysWhyANicTakesNoDmaBufs) {
  auto nics = fourNics();
  nics[0].dmaBufs = true;
  plug(nics);
  const IbSearch found = search();
  EXPECT_TRUE(found.seen[0].nic->dmaBufs().taken);
  EXPECT_EQ(found.seen[0].nic->dmaBufs().why, "");
  EXPECT_FALSE(found.seen[1].nic->dmaBufs().taken);
  EXPECT_TRUE(found.seen[1].nic->dmaBufs().why.starts_with("ibv_reg_dmabuf_mr: Operation not supported"));
}

TEST_F(IbSearchTest, GoesOnWhereANicFailsAndClosesIt) {
  for (const char* call : {"ibv_query_device", "ibv_alloc_pd", "ibv_query_port"}) {
    tuttiFakeVerbs()->failCall(call, 1, EIO);
    IbSearch found = search();
    EXPECT_EQ(namesOf(found), "a1:1 b0:1 b1:1 ") << call;
    ASSERT_EQ(refusalsOf(found).size(), 1u);
    EXPECT_NE(refusalsOf(found)[0].find(call), std::string::npos) << refusalsOf(found)[0];
    const std::vector<IbPort> kept = std::exchange(found, {}).ports;
    EXPECT_EQ(tuttiFakeVerbs()->counts().contexts, 3);
  }
}

TEST_F(IbSearchTest, FindsNothingWhereThereIsNoList) {
  tuttiFakeVerbs()->failCall("ibv_get_device_list", 1, ENOSYS);
  EXPECT_TRUE(search().ports.empty());
}

TEST_F(IbSearchTest, SaysWhatADeviceIs) {
  auto nics = fourNics();
  nics[0].dmaBufs = true;
  plug(nics);
  IbDevices devices(search("a0:1:2:3,a1").ports);
  ASSERT_EQ(devices.count(), 2);
  const plugin::NetProperties said = devices.properties(0, false);
  EXPECT_EQ(said.name, "a0");
  EXPECT_TRUE(said.pciPath.ends_with("/0000:11:00.0")) << said.pciPath;
  EXPECT_EQ(said.speedMbps, 100000);
  EXPECT_EQ(said.guid, 101u);
  EXPECT_EQ(said.port, 1);
  EXPECT_EQ(said.maxComms, 1000);
  EXPECT_EQ(said.maxRecvs, 8);
  EXPECT_TRUE(said.regIsGlobal);
  EXPECT_FALSE(said.forceFlush);
  EXPECT_EQ(said.railId, 2);
  EXPECT_EQ(said.planeId, 3);
  EXPECT_EQ(said.maxP2pBytes, std::size_t{1} << 40);
  EXPECT_EQ(said.maxCollBytes, std::size_t{512} << 20);
  EXPECT_EQ(said.physical, std::vector<int>{0});
  EXPECT_NE(said.ptrSupport & static_cast<int>(plugin::PtrKind::DmaBuf), 0);
  EXPECT_EQ(devices.properties(1, false).ptrSupport & static_cast<int>(plugin::PtrKind::DmaBuf), 0);
  EXPECT_EQ(devices.text(), "[0]a0:1/RoCE [1]a1:1/RoCE");
}

TEST_F(IbSearchTest, TakesGpuMemoryByItsAddressWhereTheHostLetsIt) {
  const IbDevices devices(search("a0").ports);
  EXPECT_EQ(devices.properties(0, false).ptrSupport, static_cast<int>(plugin::PtrKind::Host));
  EXPECT_EQ(devices.properties(0, true).ptrSupport,
            static_cast<int>(plugin::PtrKind::Host) | static_cast<int>(plugin::PtrKind::Cuda));
  for (const char* sign : {"sys/kernel/mm/memory_peers/nv_mem", "sys/module/nvidia_peermem"}) {
    EXPECT_EQ(peerMemorySign(sysfs->folder() + "/root"), "");
    const std::string folder = sysfs->folder() + "/root/" + sign;
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/version") << "1.0\n";
    EXPECT_EQ(peerMemorySign(sysfs->folder() + "/root"), "/" + std::string(sign) + "/version");
    std::filesystem::remove_all(sysfs->folder() + "/root");
  }
}

TEST_F(IbSearchTest, TakesGpuMemoryByItsAddressWhereThatIsMemoryOfTheProcess) {
  const auto source = ibNetSource(verbsParams(), sysfs->folder());
  plugin::NetOpening how = opening();
  how.gpuMemoryIsHost = true;
  const auto net = source->open(how);
  ASSERT_TRUE(net.ok());
  EXPECT_NE(net.value()->properties(0).value().ptrSupport & static_cast<int>(plugin::PtrKind::Cuda), 0);
}

TEST_F(IbSearchTest, FusesPortsIntoOneDevice) {
  IbDevices devices(search("a0:1:2:0,a1:1:2:5,b").ports);
  const plugin::NetFusion fused = devices.fuse(std::vector<int>{0, 1});
  ASSERT_EQ(fused.device, 4) << fused.why;
  const plugin::NetProperties said = devices.properties(4, false);
  EXPECT_EQ(said.name, "a0+a1");
  EXPECT_EQ(said.speedMbps, 200000);
  EXPECT_EQ(said.railId, 2);
  EXPECT_EQ(said.planeId, 0x4000 | 1 | 2) << "a bit for each plane that there is, in their order";
  EXPECT_EQ(said.physical, (std::vector<int>{0, 1}));
  EXPECT_EQ(said.guid, 101u) << "the rest is the first one's";
  EXPECT_EQ(devices.properties(devices.fuse(std::vector<int>{0, 2}).device, false).railId, -1);
}

TEST_F(IbSearchTest, TakesDmaBufsWithAFusedDeviceWhereAllItsNicsDo) {
  auto nics = fourNics();
  for (const std::size_t taking : {0, 1, 3}) nics[taking].dmaBufs = true;
  plug(nics);
  IbDevices devices(search("a0,a1,b").ports);
  const auto takes = [&](int one, int other) {
    const int fused = devices.fuse(std::vector<int>{one, other}).device;
    return (devices.properties(fused, false).ptrSupport & static_cast<int>(plugin::PtrKind::DmaBuf)) != 0;
  };
  EXPECT_TRUE(takes(0, 1));
  EXPECT_FALSE(takes(1, 2)) << "memory is registered with the second as well";
}

TEST_F(IbSearchTest, TellsAnyTwoPlanesOfAFusedDeviceApart) {
  IbDevices devices(search("a0:1:2:13,a1:1:2:0,b:::26").ports);
  const auto planeOf = [&](std::vector<int> ports) {
    return devices.properties(devices.fuse(ports).device, false).planeId;
  };
  EXPECT_EQ(planeOf({0, 1}), 0x4000 | 2 | 1);
  EXPECT_EQ(planeOf({0, 2}), 0x4000 | 2 | 4);
}

TEST_F(IbSearchTest, FusesNothingThatIsNoDevice) {
  plug({roceNic("a0", 1), infinibandNic("a1", 2), roceNic("a2", 3)});
  IbDevices devices(search().ports);
  EXPECT_NE(devices.fuse(std::vector<int>{0, 1}).why.find("Attempted to merge incompatible devices"),
            std::string::npos);
  EXPECT_EQ(devices.fuse(std::vector<int>{0, 7}).device, -1);
  EXPECT_EQ(devices.fuse(std::vector<int>{0, -1}).device, -1);
  EXPECT_EQ(devices.fuse(std::vector<int>(9, 0)).device, -1) << "nine NICs";
  EXPECT_EQ(devices.count(), 3);
  const int fused = devices.fuse(std::vector<int>{0, 2}).device;
  EXPECT_EQ(fused, 3);
  EXPECT_EQ(devices.fuse(std::vector<int>{fused, 1}).device, -1) << "one that is fused already";
}

TEST_F(IbSearchTest, MakesNoDeviceOfNothing) {
  IbDevices devices(search().ports);
  EXPECT_EQ(devices.fuse({}).device, -1);
  EXPECT_EQ(devices.count(), 4);
}

TEST_F(IbSearchTest, MakesAtMost256Devices) {
  IbDevices devices(search().ports);
  while (devices.count() < 256) ASSERT_GE(devices.fuse(std::vector<int>{0, 1}).device, 0);
  EXPECT_NE(devices.fuse(std::vector<int>{0, 1}).why.find("(256)"), std::string::npos);
}

TEST_F(IbSearchTest, TellsOfDevicesThatAContainerMayNotOpen) {
  expectLog("In a container give it /dev/infiniband");
  auto nics = fourNics();
  for (FakeNic& nic : nics) nic.openError = ENOENT;
  plug(nics);
  const IbSide side("", *sysfs);
  EXPECT_EQ(side.net->devices().value(), 0);
  EXPECT_NE(capturedText().find("a0: ibv_open_device: No such file or directory"), std::string::npos);
}

TEST_F(IbSearchTest, IsNotSearchedWhereItIsSwitchedOff) {
  Params params = verbsParams();
  params.ib.disable = true;
  const IbSide side("", *sysfs, params);
  EXPECT_EQ(side.net->devices().value(), 0);
  EXPECT_EQ(tuttiFakeVerbs()->calls("ibv_open_device"), 0);
}

TEST_F(IbSearchTest, FusesNothingWhereItIsForbidden) {
  Params params = verbsParams();
  params.ib.mergeNics = false;
  const IbSide side("a", *sysfs, params);
  EXPECT_FALSE(side.net->fuses());
  EXPECT_EQ(side.net->makeVirtual(std::vector<int>{0, 1}).why, "Skipping makeVDevice, NCCL_IB_MERGE_NICS=0");
}

TEST_F(IbSearchTest, HasNoLibraryUnderAnotherName) {
  Params params = verbsParams();
  params.ib.library = "/nowhere/libibverbs.so";
  const IbSide side("", *sysfs, params);
  EXPECT_EQ(side.net->devices().value(), 0);
}

}  // namespace
}  // namespace tutti::net::ib
