#include "topo/detect/detect_facts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "topo/machine/path_settings.h"
#include "topo/xml/topology_xml.h"

namespace tutti::test {
namespace {

namespace files = std::filesystem;

std::string readFile(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string text(const topo::XmlElement& element, const char* attribute, const char* otherwise = "") {
  const std::string* value = element.find(attribute);
  return value == nullptr ? otherwise : *value;
}

long long number(const topo::XmlElement& element, const char* attribute, long long otherwise) {
  const std::string* value = element.find(attribute);
  return value == nullptr ? otherwise : static_cast<long long>(std::strtoull(value->c_str(), nullptr, 0));
}

using Visit = std::function<void(const topo::XmlElement& element, const std::string& pci)>;

/// Calls `visit` with every element of that name below `element` and the bus id of the PCI function it is part of.
void forAll(const topo::XmlElement& element, const char* name, const Visit& visit, const std::string& pci = {}) {
  for (const topo::XmlElement& child : element.children) {
    if (child.name == name) visit(child, pci);
    forAll(child, name, visit, child.name == "pci" ? topo::normalBusId(text(child, "busid")) : pci);
  }
}

int generationOf(const topo::XmlElement& pci) {
  const double rate = std::strtod(text(pci, "link_speed").c_str(), nullptr);
  return rate >= 64 ? 6 : rate >= 32 ? 5 : rate >= 16 ? 4 : rate >= 8 ? 3 : rate >= 5 ? 2 : rate > 0 ? 1 : 0;
}

/// Functions of a tree with the ports between them.
class PciFactory {
 public:
  void add(const topo::XmlElement& element, const std::string& parent, int numa) {
    for (const topo::XmlElement& pci : element.children) {
      if (pci.name != "pci") continue;
      topo::PciFacts port;
      port.busId = fmt::format("ffff:{:02x}:{:02x}.0", ports_ / 32, ports_ % 32);
      ++ports_;
      port.parent = parent;
      port.classCode = 0x060400;
      port.numa = numa;
      topo::PciFacts facts;
      facts.busId = topo::normalBusId(text(pci, "busid"));
      facts.parent = port.busId;
      facts.classCode = static_cast<std::uint32_t>(number(pci, "class", 0));
      facts.vendor = static_cast<std::uint16_t>(number(pci, "vendor", 0));
      facts.device = static_cast<std::uint16_t>(number(pci, "device", 0));
      facts.subsystemVendor = static_cast<std::uint16_t>(number(pci, "subsystem_vendor", 0));
      facts.subsystemDevice = static_cast<std::uint16_t>(number(pci, "subsystem_device", 0));
      facts.linkSpeed = text(pci, "link_speed");
      facts.linkWidth = static_cast<int>(number(pci, "link_width", 0));
      facts.numa = numa;
      all.push_back(port);
      all.push_back(facts);
      add(pci, facts.busId, numa);
    }
  }
  std::vector<topo::PciFacts> all;

 private:
  int ports_ = 0;
};

/// Nodes of a machine by what they are in the file: "gpu 3", "net mlx5_0".
std::map<std::string, int> named(const topo::Machine& machine) {
  std::map<std::string, int> names;
  for (const int gpu : machine.nodes(topo::NodeKind::Gpu)) {
    names.emplace(fmt::format("gpu {}", machine.facts<topo::GpuFacts>(gpu).dev), gpu);
  }
  for (const int net : machine.nodes(topo::NodeKind::Net)) {
    names.emplace("net " + machine.facts<topo::NetFacts>(net).name, net);
  }
  return names;
}

std::string compare(const topo::Topology& a, const topo::Topology& b) {
  const std::map<std::string, int> left = named(a.machine);
  const std::map<std::string, int> right = named(b.machine);
  for (const auto& [name, node] : left) {
    if (right.count(name) == 0) return name + " is missing";
  }
  if (left.size() != right.size()) return "there is more than there should be";
  for (const auto& [from, node] : left) {
    for (const auto& [to, other] : left) {
      const topo::Path& one = a.paths.of(node, other);
      const topo::Path& two = b.paths.of(right.at(from), right.at(to));
      // Links that a file lists one by one add up in another order.
      if (one.type == two.type && std::abs(one.bandwidth - two.bandwidth) <= 1e-5f * one.bandwidth) continue;
      return fmt::format("{} to {}: {} {} and {} {}", from, to, topo::pathTypeName(one.type), one.bandwidth,
                         topo::pathTypeName(two.type), two.bandwidth);
    }
  }
  return {};
}

}  // namespace

std::string fixture(const std::string& part) {
  const char* root = std::getenv("TUTTI_TEST_SOURCE_ROOT");
  return std::string(root == nullptr ? "." : root) + "/tests/fixtures/" + part;
}

RecordedSystem::RecordedSystem(const std::string& name) {
  std::string folder = testing::TempDir() + "tutti-system-XXXXXX";
  EXPECT_NE(::mkdtemp(folder.data()), nullptr);
  root_ = folder;
  std::set<files::path> made;
  const auto makeFolder = [&](const files::path& parent) {
    if (made.insert(parent).second) files::create_directories(parent);
  };
  std::istringstream lines(readFile(fixture("detect/" + name + ".sys")));
  std::map<std::string, std::string> contents;
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t arrow = line.find(" -> "); arrow != line.npos) {
      const files::path link = files::path(root_) / line.substr(0, arrow);
      makeFolder(link.parent_path());
      files::create_symlink(line.substr(arrow + 4), link);
      continue;
    }
    // Bus ids have colons, but no blank behind them.
    const std::size_t colon = line.find(": ");
    contents[line.substr(0, colon)] += (colon == line.npos ? "" : line.substr(colon + 2)) + "\n";
  }
  for (const auto& [path, content] : contents) {
    makeFolder((files::path(root_) / path).parent_path());
    std::ofstream(root_ + "/" + path) << content;
  }
}

RecordedSystem::~RecordedSystem() {
  std::error_code ignored;
  files::remove_all(root_, ignored);
}

void RecordedSystem::put(const std::string& path, const std::string& content) const {
  const files::path file = files::path(root_) / path;
  files::create_directories(file.parent_path());
  std::ofstream(file) << content;
}

topo::XmlElement machineFile(const std::string& name) {
  const auto system = topo::readTopologyFile(fixture("topo/" + name + ".xml"));
  EXPECT_TRUE(system.ok()) << name;
  return system.ok() ? system.value() : topo::XmlElement{};
}

topo::HostFacts hostFactsOf(const topo::XmlElement& system) {
  topo::HostFacts facts;
  PciFactory pci;
  for (const topo::XmlElement& cpu : system.children) {
    if (cpu.name != "cpu") continue;
    const int numa = static_cast<int>(number(cpu, "numaid", -1));
    facts.numaNodes.push_back({numa, text(cpu, "affinity")});
    if (facts.processor.arch.empty()) {
      facts.processor = {text(cpu, "arch"), text(cpu, "vendor"), static_cast<int>(number(cpu, "familyid", -1)),
                         static_cast<int>(number(cpu, "modelid", -1))};
    }
    pci.add(cpu, "", numa);
  }
  std::sort(facts.numaNodes.begin(), facts.numaNodes.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  facts.pci = pci.all;
  return facts;
}

std::vector<topo::GpuSourceFacts> gpuFactsOf(const topo::XmlElement& system) {
  std::map<std::string, int> generations;
  std::map<std::string, int> widths;
  forAll(system, "pci", [&](const topo::XmlElement& pci, const std::string&) {
    generations[topo::normalBusId(text(pci, "busid"))] = generationOf(pci);
    widths[topo::normalBusId(text(pci, "busid"))] = static_cast<int>(number(pci, "link_width", 0));
  });
  std::vector<topo::GpuSourceFacts> gpus;
  forAll(system, "gpu", [&](const topo::XmlElement& element, const std::string& busId) {
    topo::GpuSourceFacts gpu;
    gpu.busId = busId;
    gpu.index = static_cast<int>(number(element, "dev", -1));
    gpu.sm = static_cast<int>(number(element, "sm", 0));
    gpu.gdr = number(element, "gdr", 0) != 0;
    gpu.pcieGeneration = generations[busId];
    gpu.pcieWidth = widths[busId];
    for (const topo::XmlElement& link : element.children) {
      if (link.name == "c2c") {
        gpu.c2cLinks = static_cast<int>(number(link, "count", 0));
        gpu.c2cBandwidth = static_cast<int>(number(link, "bw", 0));
      } else if (link.name == "nvlink") {
        const long long code = number(link, "tclass", 0);
        const topo::NvLinkEnd end = code >> 16 == 3    ? topo::NvLinkEnd::Gpu
                                    : code == 0x068001 ? topo::NvLinkEnd::Cpu
                                                       : topo::NvLinkEnd::Switch;
        const auto count = static_cast<std::size_t>(number(link, "count", 0));
        gpu.nvlinks.insert(gpu.nvlinks.end(), count, topo::NvLinkFacts{end, text(link, "target")});
      }
    }
    gpus.push_back(gpu);
  });
  return gpus;
}

std::vector<topo::NetDeviceFacts> netFactsOf(const topo::XmlElement& system) {
  std::map<long long, topo::NetDeviceFacts> byDev;
  forAll(system, "net", [&](const topo::XmlElement& element, const std::string& busId) {
    if (element.find("dev") == nullptr) return;
    topo::NetDeviceFacts net;
    net.name = text(element, "name");
    net.pciPath = busId.empty() ? "/sys/devices/virtual/net/" + net.name : "/sys/devices/pci0000:00/" + busId;
    net.guid = static_cast<std::uint64_t>(number(element, "guid", 0));
    net.speed = static_cast<int>(number(element, "speed", 10000));
    net.port = static_cast<int>(number(element, "port", 0));
    net.maxComms = static_cast<int>(number(element, "maxconn", 64));
    net.gdr = number(element, "gdr", 0) != 0;
    net.coll = number(element, "coll", 0) != 0;
    net.rail = static_cast<int>(number(element, "rail", -1));
    net.plane = static_cast<int>(number(element, "plane", -1));
    byDev.emplace(number(element, "dev", 0), net);
  });
  std::vector<topo::NetDeviceFacts> nets;
  for (const auto& [dev, net] : byDev) nets.push_back(net);
  return nets;
}

void expectMachine(const topo::HostFacts& host, const std::string& machine) {
  const topo::XmlElement system = machineFile(machine);
  topo::DetectInput input;
  input.host = host;
  input.gpus = gpuFactsOf(system);
  input.nets = netFactsOf(system);
  const auto found = topo::detectTopology(input);
  ASSERT_TRUE(found.ok());
  for (const bool interNode : {false, true}) {
    EXPECT_EQ(differenceOfWays(system, found.value(), interNode), "") << topo::writeXml(found.value());
  }
}

std::string differenceOfWays(const topo::XmlElement& a, const topo::XmlElement& b, bool interNode) {
  topo::TopologyUse use;
  use.interNode = interNode;
  forAll(a, "gpu", [&](const topo::XmlElement& gpu, const std::string&) {
    use.gpus.push_back(static_cast<int>(number(gpu, "dev", -1)));
  });
  std::sort(use.gpus.begin(), use.gpus.end());
  const auto one = topo::buildTopology(a, use, {});
  const auto two = topo::buildTopology(b, use, {});
  if (!one.ok() || !two.ok()) return one.ok() ? "what was detected is no machine" : "the file is no machine";
  return compare(one.value(), two.value());
}

}  // namespace tutti::test
