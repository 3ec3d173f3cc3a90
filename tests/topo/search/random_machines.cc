#include "topo/search/random_machines.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "topo/machine/path_settings.h"

namespace tutti::test {
namespace {

struct CpuAttributes {
  const char* arch;
  const char* vendor;
  const char* family;
  const char* model;
};
constexpr std::array kCpus{
    CpuAttributes{"x86_64", "GenuineIntel", "6", "79"},
    CpuAttributes{"x86_64", "GenuineIntel", "6", "85"},
    CpuAttributes{"x86_64", "GenuineIntel", "6", "143"},
    CpuAttributes{"x86_64", "AuthenticAMD", "143", "49"},
    CpuAttributes{"arm64", "", "", ""},
};
constexpr std::array kArchitectures{70, 80, 86, 90, 100};
constexpr std::array kMegabits{25000, 100000, 200000, 400000};

using Attributes = std::vector<std::pair<std::string, std::string>>;

topo::XmlElement element(const std::string& name, Attributes attributes) {
  topo::XmlElement made;
  made.name = name;
  made.attributes = std::move(attributes);
  return made;
}

std::string gpuBusId(int place) {
  return fmt::format("0000:{:02x}:00.0", 0x20 + place);
}

topo::XmlElement pci(const MachineSketch& sketch, const std::string& busId, const char* kind) {
  const char* speed = sketch.pciGeneration == 3 ? "8.0" : sketch.pciGeneration == 4 ? "16.0" : "32.0";
  return element(
      "pci",
      {{"busid", busId}, {"class", kind}, {"link_speed", fmt::format("{} GT/s PCIe", speed)}, {"link_width", "16"}});
}

topo::XmlElement gpuElement(const MachineSketch& sketch, int place) {
  const std::size_t at = static_cast<std::size_t>(place);
  topo::XmlElement gpu = element("gpu", {{"dev", std::to_string(sketch.dev[at])},
                                         {"sm", std::to_string(sketch.sm)},
                                         {"rank", std::to_string(sketch.dev[at])},
                                         {"gdr", "1"}});
  const auto link = [&](const std::string& target, int count, const char* kind) {
    gpu.children.push_back(element("nvlink", {{"target", target}, {"count", std::to_string(count)}, {"tclass", kind}}));
  };
  if (sketch.switchLinks > 0) link("fffffff:ff:ff.0", sketch.switchLinks, "0x068000");
  for (int other = 0; other < sketch.gpus(); ++other) {
    const int count = sketch.nvLinks[at][static_cast<std::size_t>(other)];
    if (count > 0) link(gpuBusId(other), count, "0x030200");
  }
  if (sketch.c2c) gpu.children.push_back(element("c2c", {{"bw", "44712"}, {"count", "5"}}));
  topo::XmlElement function = pci(sketch, gpuBusId(place), "0x030200");
  function.children.push_back(std::move(gpu));
  return function;
}

topo::XmlElement nicElement(const MachineSketch& sketch, int index) {
  const MachineSketch::Nic& nic = sketch.nics[static_cast<std::size_t>(index)];
  topo::XmlElement holder = element("nic", {});
  for (int port = 0; port < nic.ports; ++port) {
    const int dev = index * nic.ports + port;
    topo::XmlElement net = element("net", {{"name", fmt::format("net{}", dev)},
                                           {"dev", std::to_string(dev)},
                                           {"speed", std::to_string(nic.megabits)},
                                           {"port", std::to_string(port + 1)},
                                           {"guid", fmt::format("{:#x}", 0x1000 + index)},
                                           {"gdr", "1"}});
    if (nic.rail >= 0) net.set("rail", std::to_string(nic.rail));
    holder.children.push_back(std::move(net));
  }
  topo::XmlElement function = pci(sketch, fmt::format("0000:{:02x}:00.0", 0x60 + index), "0x020000");
  function.children.push_back(std::move(holder));
  return function;
}

/// What hangs under one branch: its GPUs, then its NICs.
std::vector<topo::XmlElement> branchElements(const MachineSketch& sketch, int branch) {
  std::vector<topo::XmlElement> children;
  for (int place = branch * sketch.perBranch; place < std::min((branch + 1) * sketch.perBranch, sketch.gpus());
       ++place) {
    children.push_back(gpuElement(sketch, place));
  }
  for (int nic = 0; nic < static_cast<int>(sketch.nics.size()); ++nic) {
    if (sketch.nics[static_cast<std::size_t>(nic)].branch == branch) children.push_back(nicElement(sketch, nic));
  }
  if (sketch.depth == 0) return children;
  topo::XmlElement bridge = pci(sketch, fmt::format("0000:{:02x}:00.0", 0xa0 + branch), "0x060400");
  bridge.children = std::move(children);
  return {std::move(bridge)};
}

void append(std::vector<topo::XmlElement>& to, std::vector<topo::XmlElement> what) {
  for (topo::XmlElement& one : what) to.push_back(std::move(one));
}

topo::XmlElement cpuElement(const MachineSketch& sketch, int socket) {
  const CpuAttributes& kind = kCpus[static_cast<std::size_t>(sketch.cpu)];
  topo::XmlElement cpu =
      element("cpu", {{"numaid", std::to_string(socket)}, {"affinity", "ffffffff"}, {"arch", kind.arch}});
  if (kind.vendor[0] != 0) {
    cpu.set("vendor", kind.vendor);
    cpu.set("familyid", kind.family);
    cpu.set("modelid", kind.model);
  }
  std::vector<topo::XmlElement> children;
  for (int branch = socket; branch < sketch.branches(); branch += sketch.sockets) {
    append(children, branchElements(sketch, branch));
  }
  if (sketch.depth == 2) {
    topo::XmlElement top = pci(sketch, fmt::format("0000:{:02x}:00.0", 0xe0 + socket), "0x060400");
    top.children = std::move(children);
    children = {std::move(top)};
  }
  cpu.children = std::move(children);
  return cpu;
}

void drawNvLinks(MachineSketch& sketch, Lot& lot) {
  const int n = sketch.gpus();
  sketch.nvLinks.assign(static_cast<std::size_t>(n), std::vector<int>(static_cast<std::size_t>(n), 0));
  const auto join = [&](int a, int b, int count) {
    sketch.nvLinks[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = count;
    sketch.nvLinks[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] = count;
  };
  const int count = lot.between(1, 4);
  switch (sketch.kind) {
    case NvLinks::None:
      break;
    case NvLinks::Switch:
      sketch.switchLinks = 6 * lot.between(1, 3);
      break;
    case NvLinks::Pairs:
      for (int i = 0; i + 1 < n; i += 2) join(i, i + 1, count);
      break;
    case NvLinks::Full:
    case NvLinks::Mesh:
      for (int i = 1; i < n; ++i) {
        for (int j = 0; j < i; ++j) {
          const bool neighbours = j == i - 1;  // so that a mesh hangs together
          if (sketch.kind == NvLinks::Full)
            join(i, j, count);
          else if (neighbours || lot.oneIn(3))
            join(i, j, lot.between(1, 2));
        }
      }
      break;
  }
}

}  // namespace

int Lot::below(int n) {
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t x = state_;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<int>((x ^ (x >> 31)) % static_cast<std::uint64_t>(n));
}

MachineSketch drawMachine(std::uint64_t seed) {
  Lot lot(seed);
  MachineSketch sketch;
  constexpr std::array kCounts{1, 2, 2, 3, 4, 4, 4, 5, 6, 8, 8, 8, 12, 16};
  sketch.dev.resize(static_cast<std::size_t>(kCounts[static_cast<std::size_t>(lot.below(kCounts.size()))]));
  std::iota(sketch.dev.begin(), sketch.dev.end(), 0);
  sketch.sockets = lot.between(1, 2);
  sketch.cpu = lot.below(kCpus.size());
  sketch.sm = kArchitectures[static_cast<std::size_t>(lot.below(kArchitectures.size()))];
  sketch.depth = lot.below(3);
  sketch.perBranch = sketch.depth == 0 ? 1 : lot.between(1, 4);
  sketch.pciGeneration = lot.between(3, 5);
  sketch.kind = static_cast<NvLinks>(lot.below(5));
  drawNvLinks(sketch, lot);
  const int nics = lot.below(std::min(sketch.gpus(), 8) + 2);
  const int megabits = kMegabits[static_cast<std::size_t>(lot.below(kMegabits.size()))];
  const bool rails = lot.oneIn(3);
  const int ports = lot.oneIn(4) ? 2 : 1;
  for (int i = 0; i < nics; ++i) sketch.nics.push_back({i % sketch.branches(), megabits, rails ? i : -1, ports});
  sketch.c2c = kCpus[static_cast<std::size_t>(sketch.cpu)].vendor[0] == 0 && sketch.sm >= 90 && lot.oneIn(2);
  if (sketch.kind == NvLinks::Switch && sketch.sm >= 90 && sketch.gpus() <= 4 && lot.oneIn(2)) {
    sketch.hosts = lot.between(2, 4);
  }
  return sketch;
}

std::string describe(const MachineSketch& sketch) {
  constexpr std::array kNames{"no NVLinks", "NVLink pairs", "an NVLink mesh", "full NVLink mesh", "NVSwitches"};
  const CpuAttributes& cpu = kCpus[static_cast<std::size_t>(sketch.cpu)];
  return fmt::format(
      "{} host(s) of {} GPUs sm {}, {}, {} sockets {} {}, PCI gen {} depth {} with {} a branch, {} NICs of {} Mb/s{}",
      sketch.hosts, sketch.gpus(), sketch.sm, kNames[static_cast<std::size_t>(sketch.kind)], sketch.sockets,
      cpu.vendor[0] != 0 ? cpu.vendor : cpu.arch, cpu.model, sketch.pciGeneration, sketch.depth, sketch.perBranch,
      sketch.nics.size(), sketch.nics.empty() ? 0 : sketch.nics[0].megabits, sketch.c2c ? ", C2C" : "");
}

topo::XmlElement toXml(const MachineSketch& sketch) {
  topo::XmlElement system = element("system", {{"version", "1"}});
  for (int socket = 0; socket < sketch.sockets; ++socket) system.children.push_back(cpuElement(sketch, socket));
  return system;
}

bool addNvLink(MachineSketch& sketch, Lot& lot) {
  if (sketch.switchLinks > 0) {
    ++sketch.switchLinks;
    return true;
  }
  std::vector<std::pair<std::size_t, std::size_t>> joined;
  for (std::size_t a = 0; a < sketch.nvLinks.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (sketch.nvLinks[a][b] > 0) joined.emplace_back(a, b);
    }
  }
  if (joined.empty()) return false;
  const auto [a, b] = joined[static_cast<std::size_t>(lot.below(static_cast<int>(joined.size())))];
  ++sketch.nvLinks[a][b];
  ++sketch.nvLinks[b][a];
  return true;
}

void renumberGpus(MachineSketch& sketch, Lot& lot) {
  for (int i = sketch.gpus() - 1; i > 0; --i) {
    std::swap(sketch.dev[static_cast<std::size_t>(i)], sketch.dev[static_cast<std::size_t>(lot.below(i + 1))]);
  }
}

Result<topo::Topology> buildSketch(const MachineSketch& sketch, bool interNode) {
  const topo::TopologyUse use{{}, sketch.hosts, interNode, interNode};
  return topo::buildTopology(toXml(sketch), use, {});
}

}  // namespace tutti::test
