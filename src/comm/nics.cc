#include "comm/nics.h"

#include <algorithm>
#include <variant>

#include "topo/paths.h"

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

}  // namespace

OwnNics nicsOf(const Topology& topology, const Graph& ring, int gpu) {
  OwnNics nics;
  for (const GraphChannel& channel : ring.channels) {
    nics.ringIn.push_back(deviceOf(topology.machine, channel.netIn));
    nics.ringOut.push_back(deviceOf(topology.machine, channel.netOut));
  }
  for (const int net : localNets(topology.machine, topology.paths, gpu)) {
    nics.nearest.push_back(deviceOf(topology.machine, net));
  }
  return nics;
}

int nicFor(const OwnNics& nics, const NicQuestion& question) {
  if (question.devices.empty()) return -1;
  int device = -1;
  if (question.kind == device::ConnKind::Graph) {
    device = turnOf(question.direction == Direction::Send ? nics.ringOut : nics.ringIn, question.channel);
  }
  if (device < 0) device = turnOf(nics.nearest, question.channel);
  if (device < 0) return turnOf(question.devices, question.turn + question.channel);
  // A described machine may have other NICs than there are: the software GPU's.
  const bool exists = std::find(question.devices.begin(), question.devices.end(), device) != question.devices.end();
  return exists ? device : turnOf(question.devices, device);
}

}  // namespace tutti
