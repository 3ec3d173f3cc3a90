#include "drive.h"

#include <utility>
#include <vector>

#include "base/hash.h"
#include "topo/machine/lines.h"
#include "topo/machine/path_settings.h"
#include "topo/search/graph_xml.h"
#include "topo/search/topology.h"
#include "topo/search/validate.h"
#include "topo/xml/fuse.h"
#include "topo/xml/topology_xml.h"

namespace tutti::fuzz {

namespace {

constexpr const char* kOrigin = "fuzz.xml";

/// Two GPUs, two NICs, on a switch each; as a host of a pair and on its own.
constexpr const char* kSmallMachine = R"(<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">
<pci busid="0000:10:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
<pci busid="0000:11:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="80" gdr="1"/></pci>
<pci busid="0000:12:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
<nic><net name="a" dev="0" speed="200000" gdr="1"/></nic></pci></pci>
<pci busid="0000:20:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
<pci busid="0000:21:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="1" sm="80" gdr="1"/></pci>
<pci busid="0000:22:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
<nic><net name="b" dev="1" speed="200000" gdr="1"/></nic></pci></pci></cpu></system>)";

/// Paths grow with the square of the nodes: what is larger takes no part in building, only in reading.
constexpr std::size_t kMostBuilt = 32 << 10;
/// GPUs, and nets, of a machine whose graphs are searched too: with sanitizers a search takes long.
constexpr std::size_t kMostSearched = 4;

topo::Machine smallMachine(int hosts) {
  const auto xml = topo::parseTopology(kSmallMachine, "small machine");
  if (!xml.ok()) return {};
  auto topology = topo::buildTopology(xml.value(), {.hosts = hosts, .interNode = true}, {});
  return topology.ok() ? std::move(topology.value().machine) : topo::Machine{};
}

/// One of the ways to use a machine, chosen by the text, for building takes far longer than reading.
topo::TopologyUse useOf(std::string_view text) {
  const std::uint64_t hash = hashText(text);
  return {.hosts = hash % 2 == 0 ? 1 : 2, .interNode = hash / 2 % 2 == 0, .collNet = hash / 4 % 2 == 0};
}

void build(const topo::XmlElement& system, const topo::TopologyUse& use) {
  const auto topology = topo::buildTopology(system, use, {});
  if (!topology.ok()) return;
  const topo::Machine& machine = topology.value().machine;
  topo::machineLines(machine, topo::machineBandwidth(machine, topology.value().paths, use.interNode));
}

}  // namespace

std::string driveTopology(std::string_view text) {
  const auto system = topo::parseTopology(text, kOrigin);
  if (!system.ok()) return "";
  const std::string written = topo::writeXml(system.value());
  const auto again = topo::parseTopology(written, kOrigin);
  if (!again.ok()) return "what was written is not read again";
  if (topo::writeXml(again.value()) != written) return "what was written does not come back as it was";
  const topo::XmlElement trimmed =
      topo::trimTopology(system.value(), {.gpus = {{0x11000, 0}, {0x1b000, 1}}, .allNets = true});
  const std::vector<topo::XmlElement> ranks = {trimmed, system.value()};
  topo::XmlElement fused = topo::fuseTopologies(ranks);
  const Status checked = topo::checkTopology(fused);
  if (!checked.ok() && checked.code() != ncclInvalidUsage) return "a fused file cannot be checked";
  if (text.size() <= kMostBuilt) build(system.value(), useOf(text));
  return "";
}

std::string driveSearch(std::string_view text) {
  const auto system = topo::parseTopology(text, kOrigin);
  if (!system.ok() || text.size() > kMostBuilt) return "";
  const topo::TopologyUse use = useOf(text);
  const auto built = topo::buildTopology(system.value(), use, {});
  if (!built.ok()) return "";
  const topo::Topology& topology = built.value();
  if (topology.machine.nodes(topo::NodeKind::Gpu).size() > kMostSearched) return "";
  if (topology.machine.nodes(topo::NodeKind::Net).size() > kMostSearched) return "";
  const topo::SearchSettings settings = {.interNode = topology.interNode, .collNet = use.collNet};
  const topo::GraphSet graphs = topo::searchGraphs(topology.machine, topology.paths, settings);
  // Where ranks share a device the search gives all of its local link to the traffic between them, and the validator
  // finds the NIC's traffic on top of that.
  if (topology.machine.nodes(topo::NodeKind::Device).size() < topology.machine.nodes(topo::NodeKind::Gpu).size())
    return "";
  for (const topo::Graph* graph :
       {&graphs.ring, &graphs.tree, &graphs.collNetChain, &graphs.collNetDirect, &graphs.nvls}) {
    const auto wrong = topo::validateGraph(topology.machine, topology.paths, *graph, topology.interNode);
    if (!wrong.empty()) return wrong.front();
  }
  return "";
}

std::string driveGraphs(std::string_view text) {
  static const std::vector<std::pair<topo::Machine, bool>> machines = {
      {smallMachine(1), false}, {smallMachine(1), true}, {smallMachine(2), true}};
  const auto xml = topo::parseXml(text, kOrigin);
  if (!xml.ok()) return "";
  for (const auto& [machine, interNode] : machines) {
    if (machine.nodes(topo::NodeKind::Gpu).empty()) return "there is no machine";
    const auto graphs = topo::readGraphs(machine, xml.value(), interNode);
    if (!graphs.ok()) continue;
    for (const topo::Graph* graph : {&graphs.value().ring, &graphs.value().nvls}) topo::graphLines(machine, *graph);
    const auto elements = topo::writeGraphs(machine, graphs.value());
    if (!elements.ok()) return "graphs that were read cannot be written";
    const std::string written = topo::writeXml(elements.value());
    const auto again = topo::parseXml(written, kOrigin);
    if (!again.ok()) return "written graphs are no XML";
    const auto graphsAgain = topo::readGraphs(machine, again.value(), interNode);
    if (!graphsAgain.ok()) return "written graphs are not read again";
    const auto writtenAgain = topo::writeGraphs(machine, graphsAgain.value());
    if (!writtenAgain.ok() || topo::writeXml(writtenAgain.value()) != written)
      return "graphs do not come back as they were";
  }
  return "";
}

}  // namespace tutti::fuzz
