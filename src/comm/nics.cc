#include "comm/nics.h"

#include <algorithm>
#include <variant>

#include "topo/paths.h"
#include "topo/paths_adjust.h"

namespace tutti {

namespace {

/// -1: no NIC.
int deviceOf(const Machine& machine, int node) {
  if (node < 0) return -1;
  const auto* net = std::get_if<NetFacts>(&machine.node(node).facts);
  return net != nullptr ? net->dev : -1;
}

int turnOf(std::span<const int> devices, int at) {
  return devices.empty() ? -1 : devices[static_cast<std::size_t>(at) % devices.size()];
}

/// Number in the machine; -1: nothing is known.
int nicInMachine(const OwnNics& nics, const NicQuestion& question) {
  int device = -1;
  if (question.kind == device::ConnKind::Graph) {
    device = turnOf(question.direction == Direction::Send ? nics.ringOut : nics.ringIn, question.channel);
  }
  return device >= 0 ? device : turnOf(nics.nearest, question.channel);
}

/// By the way that the NIC's own writes take: its reads never go through another GPU here.
NicAccess accessOf(const Topology& topology, int gpu, int net, const PathSettings& settings) {
  const PathType distance = topology.paths.of(net, gpu).type;
  const int cpu = localCpu(topology.machine, topology.paths, gpu);
  NicAccess access;
  access.device = deviceOf(topology.machine, net);
  access.reads = gdrUsable(topology.machine, topology.paths, settings, {gpu, net, true, distance});
  access.writes = gdrUsable(topology.machine, topology.paths, settings, {gpu, net, false, distance});
  access.apartFromCpu = cpu >= 0 && topology.paths.of(gpu, cpu).type == PathType::C2c && distance <= PathType::Pxb;
  return access;
}

}  // namespace

OwnNics nicsOf(const Topology& topology, const Graph& ring, int gpu, const PathSettings& settings) {
  OwnNics nics;
  for (const GraphChannel& channel : ring.channels) {
    nics.ringIn.push_back(deviceOf(topology.machine, channel.netIn));
    nics.ringOut.push_back(deviceOf(topology.machine, channel.netOut));
  }
  for (const int net : localNets(topology.machine, topology.paths, gpu)) {
    nics.nearest.push_back(deviceOf(topology.machine, net));
  }
  for (const int net : topology.machine.nodes(NodeKind::Net)) {
    nics.access.push_back(accessOf(topology, gpu, net, settings));
  }
  return nics;
}

int nicFor(const OwnNics& nics, const NicQuestion& question) {
  if (question.devices.empty()) return -1;
  const int device = nicInMachine(nics, question);
  if (device < 0) return turnOf(question.devices, question.turn + question.channel);
  // A described machine may have other NICs than there are: the software GPU's.
  const bool exists = std::find(question.devices.begin(), question.devices.end(), device) != question.devices.end();
  return exists ? device : turnOf(question.devices, device);
}

std::optional<NicAccess> accessFor(const OwnNics& nics, const NicQuestion& question) {
  const int device = nicInMachine(nics, question);
  const auto known = std::find_if(nics.access.begin(), nics.access.end(),
                                  [&](const NicAccess& access) { return device >= 0 && access.device == device; });
  return known == nics.access.end() ? std::nullopt : std::optional(*known);
}

}  // namespace tutti
