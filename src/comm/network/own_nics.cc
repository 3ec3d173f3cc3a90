#include "comm/network/own_nics.h"

#include <variant>

#include "topo/machine/paths.h"
#include "topo/machine/paths_adjust.h"
#include "topo/search/graph.h"
#include "topo/search/topology.h"

namespace tutti::comm {

namespace {

/// -1: no NIC.
int deviceOf(const topo::Machine& machine, int node) {
  if (node < 0) return -1;
  const auto* net = std::get_if<topo::NetFacts>(&machine.node(node).facts);
  return net != nullptr ? net->dev : -1;
}

/// By the way that the NIC's own writes take: its reads never go through another GPU here.
NicAccess accessOf(const topo::Topology& topology, int gpu, int net, const topo::PathSettings& settings) {
  const topo::PathType distance = topology.paths.of(net, gpu).type;
  const int cpu = topo::localCpu(topology.machine, topology.paths, gpu);
  NicAccess access;
  access.device = deviceOf(topology.machine, net);
  access.reads = topo::gdrUsable(topology.machine, topology.paths, settings, {gpu, net, true, distance});
  access.writes = topo::gdrUsable(topology.machine, topology.paths, settings, {gpu, net, false, distance});
  access.apartFromCpu =
      cpu >= 0 && topology.paths.of(gpu, cpu).type == topo::PathType::C2c && distance <= topo::PathType::Pxb;
  return access;
}

/// By the local number; a NIC without a rail is on one of its own, so that hosts that are alike have the same.
NicWay wayOf(const topo::Topology& topology, int gpu, int net) {
  const auto& facts = topology.machine.facts<topo::NetFacts>(net);
  NicWay way{.device = facts.dev,
             .type = topology.paths.of(gpu, net).type,
             .relay = -1,
             .rail = facts.rail >= 0 ? facts.rail : facts.dev};
  const int relay = topo::relayOnWay(topology.machine, topology.paths, gpu, net);
  if (relay >= 0) way.relay = topology.machine.facts<topo::GpuFacts>(relay).rank;
  return way;
}

bool relaysFor(const topo::Topology& topology, int gpu) {
  for (const int other : topology.machine.nodes(topo::NodeKind::Gpu)) {
    for (const int net : topology.machine.nodes(topo::NodeKind::Net)) {
      if (other != gpu && topo::relayOnWay(topology.machine, topology.paths, other, net) == gpu) return true;
    }
  }
  return false;
}

}  // namespace

OwnNics nicsOf(const topo::Topology& topology, const topo::Graph& ring, int gpu, const topo::PathSettings& settings) {
  OwnNics nics;
  for (const topo::GraphChannel& channel : ring.channels) {
    nics.ringIn.push_back(deviceOf(topology.machine, channel.netIn));
    nics.ringOut.push_back(deviceOf(topology.machine, channel.netOut));
  }
  for (const int net : topo::localNets(topology.machine, topology.paths, gpu)) {
    nics.nearest.push_back(deviceOf(topology.machine, net));
  }
  for (const int net : topology.machine.nodes(topo::NodeKind::Net)) {
    nics.access.push_back(accessOf(topology, gpu, net, settings));
    nics.ways.push_back(wayOf(topology, gpu, net));
  }
  nics.relaysForOthers = relaysFor(topology, gpu);
  return nics;
}

}  // namespace tutti::comm
