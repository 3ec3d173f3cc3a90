#include "topo/xml/fuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>

#include "support/log_capture.h"
#include "topo/machine/build.h"
#include "topo/xml/topology_xml.h"

namespace tutti::topo {
namespace {

XmlElement parsedSystem(const std::string& text) {
  auto system = parseTopology(text, "t.xml");
  EXPECT_TRUE(system.ok());
  return system.ok() ? system.value() : XmlElement{};
}

/// Two CPUs; on the first a switch with two GPUs and a NIC of two ports, on the second a GPU, a NIC of no PCI function.
XmlElement host() {
  return parsedSystem(
      "<system version=\"1\">"
      "<cpu numaid=\"0\"><pci busid=\"0000:10:00.0\" class=\"0x060400\"><pcilink target=\"0000:20:00.0\"/>"
      "<pci busid=\"0000:11:00.0\"><gpu dev=\"0\"/></pci><pci busid=\"0000:12:00.0\"><gpu dev=\"1\" rank=\"7\"/></pci>"
      "<pci busid=\"0000:13:00.0\"><nic><net name=\"a\" dev=\"0\" guid=\"0x5\"/><net name=\"b\" dev=\"1\"/></nic></pci>"
      "</pci></cpu>"
      "<cpu numaid=\"1\"><pci busid=\"0000:20:00.0\"><gpu dev=\"2\"/></pci><nic><net name=\"c\" dev=\"2\"/></nic></cpu>"
      "</system>");
}

std::string trimmedTo(const UsedLeaves& used) {
  return writeXml(trimTopology(host(), used));
}

TEST(Trim, KeepsTheBranchOfTheOwnGpu) {
  EXPECT_EQ(trimmedTo({.gpus = {{0x12000, 3}}}),
            "<system version=\"1\">\n"
            "  <cpu numaid=\"0\">\n"
            "    <pci busid=\"0000:10:00.0\" class=\"0x060400\">\n"
            "      <pcilink target=\"0000:20:00.0\"/>\n"
            "      <pci busid=\"0000:12:00.0\">\n"
            "        <gpu dev=\"1\" rank=\"3\"/>\n"
            "      </pci>\n"
            "    </pci>\n"
            "  </cpu>\n"
            "</system>\n");
}

TEST(Trim, KeepsTheNetsOfThatName) {
  const XmlElement system = trimTopology(host(), {.nets = {"b", "c"}});
  ASSERT_EQ(system.children.size(), 2u);
  EXPECT_EQ(system.children[0].children.at(0).children.size(), 2u);  // the pcilink, the NIC
  const XmlElement& nic = system.children[0].children[0].children[1].children.at(0);
  ASSERT_EQ(nic.children.size(), 1u);
  EXPECT_EQ(*nic.children[0].find("name"), "b");
  ASSERT_EQ(system.children[1].children.size(), 1u);
  EXPECT_EQ(system.children[1].children[0].name, "nic");
}

TEST(Trim, KeepsAllNetsWhereAsked) {
  const std::string text = trimmedTo({.allNets = true});
  for (const char* name : {"name=\"a\"", "name=\"b\"", "name=\"c\""}) EXPECT_NE(text.find(name), std::string::npos);
  EXPECT_EQ(text.find("<gpu"), std::string::npos);
}

TEST(Trim, GivesEachRankOfADeviceItsGpu) {
  const std::string text = trimmedTo({.gpus = {{0x20000, 0}, {0x20000, 1}}});
  EXPECT_NE(text.find("<gpu dev=\"2\" rank=\"0\"/>\n      <gpu dev=\"2\" rank=\"1\"/>"), std::string::npos);
}

TEST(Trim, TellsPartitionsOfADeviceApart) {
  const XmlElement system = parsedSystem(
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:11:00.0\">"
      "<gpu dev=\"0\" mlopart=\"0\"/><gpu dev=\"0\" mlopart=\"1\"/></pci></cpu></system>");
  const std::string text = writeXml(trimTopology(system, {.gpus = {{0x11000, 0, 1}, {0x11000, 1, 0}}}));
  EXPECT_NE(text.find("<gpu dev=\"0\" mlopart=\"0\" rank=\"1\"/>"), std::string::npos);
  EXPECT_NE(text.find("<gpu dev=\"0\" mlopart=\"1\" rank=\"0\"/>"), std::string::npos);
}

TEST(Trim, LeavesNothingWhereNothingIsUsed) {
  EXPECT_EQ(trimmedTo({}), "<system version=\"1\"/>\n");
}

TEST(Fuse, PutsTheFilesOfAllRanksTogetherAgain) {
  std::vector<XmlElement> ranks;
  int rank = 0;
  for (const std::uint64_t busId : {0x11000u, 0x12000u, 0x20000u}) {
    ranks.push_back(trimTopology(host(), {.gpus = {{busId, rank++}}, .allNets = true}));
  }
  const XmlElement fused = fuseTopologies(ranks);
  // Branches that come with a later rank follow behind those that are there.
  EXPECT_EQ(writeXml(fused),
            "<system version=\"1\">\n"
            "  <cpu numaid=\"0\">\n"
            "    <pci busid=\"0000:10:00.0\" class=\"0x060400\">\n"
            "      <pcilink target=\"0000:20:00.0\"/>\n"
            "      <pci busid=\"0000:11:00.0\">\n"
            "        <gpu dev=\"0\" rank=\"0\"/>\n"
            "      </pci>\n"
            "      <pci busid=\"0000:13:00.0\">\n"
            "        <nic>\n"
            "          <net name=\"a\" dev=\"0\" guid=\"0x5\"/>\n"
            "          <net name=\"b\" dev=\"1\"/>\n"
            "        </nic>\n"
            "      </pci>\n"
            "      <pci busid=\"0000:12:00.0\">\n"
            "        <gpu dev=\"1\" rank=\"1\"/>\n"
            "      </pci>\n"
            "    </pci>\n"
            "  </cpu>\n"
            "  <cpu numaid=\"1\">\n"
            "    <nic>\n"
            "      <net name=\"c\" dev=\"2\"/>\n"
            "    </nic>\n"
            "    <pci busid=\"0000:20:00.0\">\n"
            "      <gpu dev=\"2\" rank=\"2\"/>\n"
            "    </pci>\n"
            "  </cpu>\n"
            "</system>\n");
}

/// Names of all nodes, sorted, and of what is joined how well: what a machine is but for the order of its nodes.
std::vector<std::string> contentsOf(const XmlElement& system) {
  const auto machine = buildMachine(system);
  EXPECT_TRUE(machine.ok());
  std::vector<std::string> contents;
  if (!machine.ok()) return contents;
  for (int n = 0; n < machine.value().nodeCount(); ++n) contents.push_back(nodeName(machine.value(), n));
  for (int l = 0; l < machine.value().linkCount(); ++l) {
    const Link& link = machine.value().link(l);
    contents.push_back(nodeName(machine.value(), link.from) + " - " + nodeName(machine.value(), link.to) + " " +
                       std::to_string(link.bandwidth));
  }
  std::sort(contents.begin(), contents.end());
  return contents;
}

void collectGpus(const XmlElement& element, std::vector<UsedGpu>& gpus) {
  for (const XmlElement& child : element.children) {
    if (child.name == "gpu") gpus.push_back({busIdAttribute(element, "busid").value(), static_cast<int>(gpus.size())});
    collectGpus(child, gpus);
  }
}

TEST(Fuse, MakesEveryKnownMachineOfTheFilesOfItsRanks) {
  const char* root = std::getenv("TUTTI_TEST_SOURCE_ROOT");
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(root ? root : ".") + "/tests/fixtures/topo")) {
    if (file.path().extension() != ".xml") continue;
    const auto system = readTopologyFile(file.path());
    ASSERT_TRUE(system.ok());
    std::vector<UsedGpu> gpus;
    collectGpus(system.value(), gpus);
    std::vector<XmlElement> ranks;
    for (const UsedGpu& gpu : gpus) ranks.push_back(trimTopology(system.value(), {.gpus = {gpu}, .allNets = true}));
    std::reverse(ranks.begin(), ranks.end());
    const XmlElement whole = trimTopology(system.value(), {.gpus = gpus, .allNets = true});
    EXPECT_EQ(contentsOf(fuseTopologies(ranks)), contentsOf(whole)) << file.path();
  }
}

TEST(Fuse, DoesNotMindTheOrderOfAttributes) {
  const std::vector<XmlElement> files = {
      parsedSystem("<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\"/></system>"),
      parsedSystem("<system version=\"1\"><cpu arch=\"arm64\" numaid=\"0\"/></system>"),
      parsedSystem("<system version=\"1\"><cpu numaid=\"0\"/></system>")};
  EXPECT_EQ(fuseTopologies(files).children.size(), 2u);
}

TEST(Fuse, KeepsWhatAFileSaysTwice) {
  const std::string twice =
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:11:00.0\"><gpu dev=\"0\" rank=\"0\">"
      "<nvlink target=\"0000:12:00.0\" count=\"1\"/><nvlink target=\"0000:12:00.0\" "
      "count=\"1\"/></gpu></pci></cpu></system>";
  const std::vector<XmlElement> files = {parsedSystem("<system version=\"1\"/>"), parsedSystem(twice),
                                         parsedSystem(twice)};
  const XmlElement fused = fuseTopologies(files);
  EXPECT_EQ(fused.children.at(0).children.at(0).children.at(0).children.size(), 2u);
}

TEST(Fuse, TakesTimeByTheSizeOfTheFiles) {
  // As many children as a file may have, alike but for the last of their attributes.
  XmlElement file{.name = "nic"};
  for (int i = 0; i < kMaxTopologyChildren; ++i) {
    XmlElement& net = file.children.emplace_back(XmlElement{.name = "net"});
    for (int a = 0; a < 30; ++a) net.set("a" + std::to_string(a), "1");
    net.set("name", std::to_string(i));
  }
  XmlElement turned = file;
  for (XmlElement& net : turned.children) std::reverse(net.attributes.begin(), net.attributes.end());
  const std::clock_t begin = std::clock();
  const std::vector<XmlElement> files = {file, turned};
  EXPECT_EQ(fuseTopologies(files).children.size(), file.children.size());
  EXPECT_LT(std::clock() - begin, 5 * CLOCKS_PER_SEC);
}

TEST(Fuse, ANicDoesCollectivesWhereAllRanksSaySo) {
  const auto nic = [](const std::string& coll) {
    return parsedSystem("<system version=\"1\"><cpu numaid=\"0\"><nic><net name=\"a\" dev=\"0\"" + coll +
                        "/></nic></cpu></system>");
  };
  const auto fusedNets = [](const std::vector<XmlElement>& files) {
    return fuseTopologies(files).children.at(0).children.at(0).children;
  };
  const XmlElement with = nic(" coll=\"1\"");
  const XmlElement without = nic("");
  for (const auto& files : {std::vector{with, without}, std::vector{without, with, with}}) {
    ASSERT_EQ(fusedNets(files).size(), 1u) << "it is one NIC, whatever is known of it";
    EXPECT_EQ(fusedNets(files)[0].find("coll"), nullptr);
  }
  ASSERT_EQ(fusedNets({with, with}).size(), 1u);
  EXPECT_EQ(*fusedNets({with, with})[0].find("coll"), "1");
}

TEST(Fuse, OfNothingIsNothing) {
  EXPECT_TRUE(fuseTopologies({}).name.empty());
}

TEST(Fuse, KeepsHostsOfADomainApart) {
  std::vector<XmlElement> hosts(2, trimTopology(host(), {.gpus = {{0x11000, 0}}}));
  setHostHash(hosts[0], 0xaaaa);
  setHostHash(hosts[1], 0xbbbb);
  hosts[1].children[0].children[0].children[1].children[0].set("rank", "1");
  const XmlElement fused = fuseTopologies(hosts);
  ASSERT_EQ(fused.children.size(), 2u);
  EXPECT_EQ(*fused.children[0].find("host_hash"), "0xaaaa");
  EXPECT_EQ(*fused.children[1].find("host_hash"), "0xbbbb");
}

TEST(CopyHosts, GivesEachHostItsHashRanksAndAdapters) {
  const XmlElement one = trimTopology(host(), {.gpus = {{0x11000, 0}, {0x12000, 1}}, .allNets = true});
  const auto copied = copyHosts(one, 3);
  ASSERT_TRUE(copied.ok());
  const XmlElement& domain = copied.value();
  ASSERT_EQ(domain.children.size(), 6u);
  const XmlElement& last = domain.children[4].children.at(0);
  EXPECT_NE(*domain.children[0].find("host_hash"), *domain.children[2].find("host_hash"));
  EXPECT_EQ(*domain.children[4].find("host_hash"), *domain.children[5].find("host_hash"));
  EXPECT_EQ(*last.children.at(1).children.at(0).find("rank"), "4");
  EXPECT_EQ(*last.children.at(2).children.at(0).find("rank"), "5");
  EXPECT_EQ(*last.children.at(3).children.at(0).children.at(0).find("guid"), "0x2000000000005");
  EXPECT_EQ(last.children.at(3).children.at(0).children.at(1).find("guid"), nullptr);
}

TEST(CopyHosts, MakesNoMoreElementsThanAFileMayHave) {
  XmlElement system{.name = "system"};
  system.children.assign(1023, XmlElement{.name = "cpu"});
  EXPECT_TRUE(copyHosts(system, 64).ok());
  test::expectLog("<system>: 65 copies of 1024 elements are more than 65536: ask for fewer hosts");
  EXPECT_EQ(copyHosts(system, 65).status().code(), ncclInvalidUsage);
}

TEST(CopyHosts, MakesNoRanksThatAreNoNumbersAnyMore) {
  const XmlElement system = trimTopology(host(), {.gpus = {{0x11000, std::numeric_limits<int>::max()}}});
  test::expectLog("<system>: 1 copies of a host with rank 2147483647 have more ranks than can be counted");
  EXPECT_EQ(copyHosts(system, 1).status().code(), ncclInvalidUsage);
}

}  // namespace
}  // namespace tutti::topo
