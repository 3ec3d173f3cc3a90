// What a graph makes the links of a machine carry: written from the rules, not shared with the search it is to check.
#pragma once

#include <string>
#include <vector>

#include "topo/machine/machine.h"
#include "topo/machine/paths.h"
#include "topo/search/graph.h"

namespace tutti::topo {

/// One direction of traffic of a channel, between nodes of the machine. GB/s.
struct Stream {
  int channel = 0;
  int from = -1;
  int to = -1;
  double bandwidth = 0;
  bool viaNet = false;  ///< one end is a NIC: bwInter and typeInter apply
};

/// All streams of a graph whose channels are well formed (GPUs and NICs exist), in the order of its channels.
std::vector<Stream> streamsOf(const Machine& machine, const Graph& graph, bool interNode);

/// What is wrong with the path of a stream: not a chain of links from one end to the other, through a GPU that may not
/// relay, or worse links than its type says. Empty: nothing.
std::string routeFault(const Machine& machine, const PathTable& paths, const Stream& stream);

/// What all streams together put on a link, one direction.
struct LinkUse {
  double load = 0;            ///< GB/s
  std::vector<int> channels;  ///< that use it, ascending
};

/// By number of link. Streams must have paths without faults.
std::vector<LinkUse> linkUse(const Machine& machine, const PathTable& paths, const std::vector<Stream>& streams);

/// A sentence for each link that carries more than its capacity, one part in a thousand allowed for rounding.
std::vector<std::string> overloadedLinks(const Machine& machine, const std::vector<LinkUse>& use);

/// A sentence for each adapter port (NICs of one host with equal guid and port) whose channels receive or send more
/// than it can.
std::vector<std::string> overloadedNics(const Machine& machine, const Graph& graph);

}  // namespace tutti::topo
