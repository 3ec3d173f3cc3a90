// Machines made by hand, and graphs on them, for the tests of the validator.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "topo/machine/machine.h"
#include "topo/machine/path_settings.h"
#include "topo/machine/paths.h"
#include "topo/search/graph.h"
#include "topo/search/validate.h"

namespace tutti::test {

struct Ports {
  std::uint64_t guid;
  int port;
  int rail = -1;
  int plane = -1;
};

/// A machine under construction: GPUs and NICs under switches of one CPU.
struct Sketch {
  topo::Machine machine;
  int cpu = -1;
  std::vector<int> switches;
  std::vector<int> devices;
  std::vector<int> gpus;
  std::vector<int> nets;

  explicit Sketch(topo::CpuKind kind) { cpu = machine.addNode(0, 0, topo::CpuFacts{kind, 0, ""}); }

  void addSwitch(float uplink) {
    switches.push_back(machine.addNode(0, 0x1000 + switches.size(), topo::SwitchFacts{}));
    machine.connect(switches.back(), cpu, topo::LinkKind::Pci, uplink);
  }
  /// `parent`: a switch or the CPU.
  void addGpu(int parent, int sm, float pci) {
    const int index = static_cast<int>(gpus.size());
    const std::uint64_t id = 0x6000 + gpus.size();
    devices.push_back(machine.addNode(0, id, topo::DeviceFacts{index, sm, -1, true}));
    gpus.push_back(machine.addNode(0, id, topo::GpuFacts{index, index, devices.back(), sm, true}));
    machine.connect(gpus.back(), devices.back(), topo::LinkKind::Local, 5000);
    machine.connect(devices.back(), parent, topo::LinkKind::Pci, pci);
  }
  void addNet(int parent, float speed, const Ports& ports, float pci = 24) {
    const int nic = machine.addNode(0, 0x9000 + nets.size(), topo::NicFacts{});
    topo::NetFacts facts;
    facts.dev = static_cast<int>(nets.size());
    facts.speed = speed;
    facts.guid = ports.guid;
    facts.port = ports.port;
    facts.rail = ports.rail;
    facts.plane = ports.plane;
    facts.gdr = true;
    nets.push_back(machine.addNode(0, nets.size(), facts));
    machine.connect(nic, parent, topo::LinkKind::Pci, pci);
    machine.connect(nic, nets.back(), topo::LinkKind::Net, speed);
  }
  void nvLink(std::size_t a, std::size_t b, float bandwidth) {
    machine.connect(devices[a], devices[b], topo::LinkKind::NvLink, bandwidth);
  }
  topo::PathTable paths() {
    machine.sortLinks();
    return topo::shortestPaths(machine, topo::PathSettings{});
  }
};

/// Four GPUs in a circle of NVLinks of 40 GB/s, two under each of two switches with a NIC of 25 GB/s on a rail of its
/// own.
inline Sketch fourGpus() {
  Sketch sketch(topo::CpuKind::Amd);
  for (int i = 0; i < 2; ++i) sketch.addSwitch(24);
  for (int i = 0; i < 4; ++i) sketch.addGpu(sketch.switches[static_cast<std::size_t>(i / 2)], 80, 24);
  for (std::size_t i = 0; i < 4; ++i) sketch.nvLink(i, (i + 1) % 4, 40);
  for (std::uint64_t i = 0; i < 2; ++i) sketch.addNet(sketch.switches[i], 25, {0x100 + i, 1});
  return sketch;
}

/// A machine with its ways; GPUs and NICs are named by their place in it.
struct Checked {
  Sketch sketch;
  topo::PathTable paths;

  explicit Checked(Sketch what) : sketch(std::move(what)), paths(sketch.paths()) {}

  std::vector<int> order(std::initializer_list<std::size_t> places) const {
    std::vector<int> nodes;
    for (const std::size_t place : places) nodes.push_back(sketch.gpus[place]);
    return nodes;
  }
  topo::Graph graph(topo::GraphId id, topo::Pattern pattern, float intra, float inter = 0) const {
    topo::Graph graph;
    graph.id = id;
    graph.pattern = pattern;
    graph.bwIntra = intra;
    graph.bwInter = inter > 0 ? inter : intra;
    graph.typeIntra = topo::PathType::Nvl;
    graph.typeInter = topo::PathType::Pix;
    return graph;
  }
  topo::Graph ring(float intra, float inter = 0) const {
    return graph(topo::GraphId::Ring, topo::Pattern::Ring, intra, inter);
  }
  void add(topo::Graph& graph, std::initializer_list<std::size_t> places, int in = -1, int out = -1) const {
    const auto net = [&](int i) { return i < 0 ? -1 : sketch.nets[static_cast<std::size_t>(i)]; };
    graph.channels.push_back({order(places), net(in), net(out)});
  }
  std::string gpu(std::size_t place) const { return topo::nodeName(sketch.machine, sketch.gpus[place]); }
  std::string net(std::size_t place) const { return topo::nodeName(sketch.machine, sketch.nets[place]); }
  std::vector<std::string> faults(const topo::Graph& graph, bool interNode = false) const {
    return topo::validateGraph(sketch.machine, paths, graph, interNode);
  }
};

}  // namespace tutti::test
