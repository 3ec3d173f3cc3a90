// What tutti-info net says of interfaces and of NICs with verbs, which are those of the verbs library for tests.
#include "networks.h"

#include <cerrno>

#include "support/log_capture.h"
#include "transport/net/ib/ib_pair.h"

namespace tutti::tool {
namespace {

using namespace test;

class VerbsText : public VerbsTest {
 protected:
  std::string text(const Params& params = verbsParams()) const { return verbsText(params, sysfs->folder()); }
  /// What is said of one NIC.
  static std::string partOf(const std::string& text, const std::string& nic) {
    const std::size_t begin = text.find("\n  " + nic + ":");
    if (begin == std::string::npos) return {};
    std::size_t end = begin + 1;
    do {
      end = text.find('\n', end + 1);
    } while (end != std::string::npos && text.compare(end, 4, "\n   ") == 0);
    return text.substr(begin, end - begin);
  }
};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// The line in which `part` is.
std::string lineWith(const std::string& text, std::string_view part) {
  const std::size_t at = text.find(part);
  if (at == std::string::npos) return {};
  const std::size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

TEST_F(VerbsText, TellsStateSpeedAndPlaceOfAPort) {
  auto nics = fourNics();
  nics[0].ports[0].mtu = IBV_MTU_1024;
  plug(nics);
  std::ofstream(sysfs->folder() + "/a0/device/numa_node") << "1\n";
  const std::string a0 = partOf(text(), "a0");
  EXPECT_TRUE(has(a0, "GUID 0x0000000000000065, PCI ")) << a0;
  EXPECT_TRUE(has(a0, "/0000:11:00.0, NUMA node 1")) << a0;
  EXPECT_TRUE(has(a0, "port 1: used\n      NCCL_IB_HCA is not set: all ports are chosen")) << a0;
  EXPECT_TRUE(has(a0, "ACTIVE, Ethernet (RoCE), 100000 Mbit/s, MTU 1024, LID 0")) << a0;
  EXPECT_TRUE(has(partOf(text(), "a1"), "NUMA node not known"));
}

TEST_F(VerbsText, TellsWhichGidIsTakenAndWhatTheOthersHaveAgainstThem) {
  const std::string a0 = partOf(text(), "a0");
  EXPECT_TRUE(has(a0, "GIDs: 4 of 4 entries are set; wished: AF_INET, RoCE v2")) << a0;
  EXPECT_EQ(lineWith(a0, "[3]"), "        [3] ::ffff:10.0.0.1 IPv4 RoCE v2 <- taken: the first that is as wished");
  EXPECT_EQ(lineWith(a0, "[2]"), "        [2] ::ffff:10.0.0.1 IPv4 RoCE v1: not of the RoCE version that is wished");
  EXPECT_EQ(lineWith(a0, "[1]"), "        [1] fe80::1 IPv6 RoCE v2: link-local, not of the family that is wished");
  EXPECT_FALSE(has(a0, "Doubtful"));
}

TEST_F(VerbsText, ObeysTheSettingsForGids) {
  Params params = verbsParams();
  params.ib.gidIndex = 2;
  EXPECT_TRUE(has(lineWith(text(params), "[2]"), "taken: NCCL_IB_GID_INDEX asks for it"));
  params = verbsParams();
  params.ib.roceVersion = 1;
  EXPECT_TRUE(has(lineWith(text(params), "[2]"), "taken: the first that is as wished"));
  params = verbsParams();
  params.ib.addrRange = "10.9.0.0/16";
  EXPECT_TRUE(has(lineWith(text(params), "[3]"), "not within NCCL_IB_ADDR_RANGE <- taken: nothing fits better"));
  EXPECT_TRUE(has(text(params), "Doubtful: GID 3 is taken, but none is within NCCL_IB_ADDR_RANGE"));
}

TEST_F(VerbsText, TakesEntryZeroOfInfiniband) {
  plug({infinibandNic("a0", 1)});
  const std::string said = text();
  EXPECT_TRUE(has(said, "ACTIVE, InfiniBand, 100000 Mbit/s, MTU 4096, LID 1")) << said;
  EXPECT_TRUE(has(lineWith(said, "[0]"), "<- taken: InfiniBand uses entry 0")) << said;
}

TEST_F(VerbsText, TellsWhyPortsAndNicsAreNotUsed) {
  auto nics = fourNics();
  nics[0].ports[0].state = IBV_PORT_DOWN;
  nics[1].openError = EACCES;
  nics[3].ports.push_back(nics[3].ports[0]);
  plug(nics);
  Params params = verbsParams();
  params.ib.hca = "a,b1:2";
  const std::string said = text(params);
  EXPECT_TRUE(has(said, "(NCCL_IB_HCA=a,b1:2)")) << said;
  EXPECT_TRUE(
      has(partOf(said, "a0"), "port 1: not used: the port is not active\n      chosen by NCCL_IB_HCA (fits a)"));
  EXPECT_TRUE(has(partOf(said, "a0"), "DOWN, Ethernet"));
  EXPECT_TRUE(partOf(said, "a1").starts_with("\n  a1: not used: ibv_open_device: Permission denied"));
  EXPECT_TRUE(
      has(partOf(said, "b0"),
          "not used: NCCL_IB_HCA leaves it out\n      left out by NCCL_IB_HCA (no part of NCCL_IB_HCA fits it)"));
  EXPECT_TRUE(has(partOf(said, "b1"), "port 2: used\n      chosen by NCCL_IB_HCA (fits b1:2)")) << said;
}

TEST_F(VerbsText, TellsOfDmaBufsOrderingAndLockedMemory) {
  auto nics = fourNics();
  nics[0].dmaBufs = true;
  plug(nics);
  Params params = verbsParams();
  EXPECT_TRUE(has(partOf(text(params), "a0"), "dma-bufs of GPU memory: taken"));
  EXPECT_TRUE(has(partOf(text(params), "a1"), "dma-bufs of GPU memory: no: ibv_reg_dmabuf_mr: Operation not supp"));
  EXPECT_TRUE(has(text(params), "relaxed ordering: on"));
  EXPECT_TRUE(has(text(params), "locked memory (ulimit -l): "));
  params.ib.relaxedOrdering = 0;
  EXPECT_TRUE(has(text(params), "relaxed ordering: off: NCCL_IB_PCI_RELAXED_ORDERING=0"));
}

TEST_F(VerbsText, NamesTheRemedyWhereThereIsNoLibraryOrNoDevice) {
  Params params = verbsParams();
  params.ib.library = "/nowhere/libibverbs.so.1";
  EXPECT_TRUE(has(text(params), "/nowhere/libibverbs.so.1")) << text(params);
  EXPECT_TRUE(has(text(params), "Install libibverbs1 and ibverbs-providers"));
  params.ib.disable = true;
  EXPECT_TRUE(has(text(params), "not used: NCCL_IB_DISABLE is set\n"));
  plug({});
  EXPECT_TRUE(has(text(), "libibverbs lists no device"));
  EXPECT_TRUE(has(text(), "--device=/dev/infiniband"));
}

TEST_F(VerbsText, RepeatsWhatIsWrongWithTheList) {
  expectLog("'x' in 'a:x' is no number");
  Params params = verbsParams();
  params.ib.hca = "a:x";
  EXPECT_TRUE(has(text(params), "NCCL_IB_HCA: 'x' in 'a:x' is no number"));
}

TEST(InterfacesText, TellsOfEachWhyItIsUsedOrNot) {
  Params params;
  params.sockets.ifname = "=lo";
  const std::string said = interfacesText(params, "/sys/class/net");
  EXPECT_TRUE(has(said, "(NCCL_SOCKET_IFNAME==lo, NCCL_SOCKET_FAMILY is not set)")) << said;
  EXPECT_TRUE(has(said,
                  "  lo 127.0.0.1: used: NCCL_SOCKET_IFNAME names it\n    speed not known, taken for 10000 Mbit/s, on "
                  "no PCI bus, NUMA node not known\n"))
      << said;
  EXPECT_EQ(has(said, "  lo ::1:"), has(said, "  lo ::1: left out: no other host reaches ::1")) << said;
  params.sockets.ifname = "nosuch";
  const std::string none = interfacesText(params, "/sys/class/net");
  EXPECT_TRUE(has(none, "  lo 127.0.0.1: left out: NCCL_SOCKET_IFNAME does not name it")) << none;
  EXPECT_TRUE(has(none, "None can be used")) << none;
}

}  // namespace
}  // namespace tutti::tool
