// A machine's sockets as columns: what a picture of it is laid out from.
#pragma once

#include <string>
#include <vector>

#include "topo/machine/machine.h"
#include "tutti_topo/draw_layout.h"

namespace tutti::tool {

/// Room for one GPU and one NIC; -1: none. Parents are switches or the CPU.
struct Column {
  int gpu = -1;
  int gpuParent = -1;
  int net = -1;
  int nic = -1;  ///< the net's function
  int netParent = -1;
  std::vector<int> moreNets;  ///< that share the net's box, where there are too many to show each
};

/// A switch spans the columns of all that hangs under it.
struct SwitchSpan {
  int node = -1;
  int parent = -1;
  int level = 0;  ///< 0: directly under the CPU
  int first = 0;
  int columns = 0;
};

struct SocketPlan {
  int cpu = -1;
  std::vector<Column> columns;  ///< at least one
  std::vector<SwitchSpan> switches;
  int levels = 0;     ///< of switches
  bool nets = false;  ///< some column has a NIC
};

/// What stands in a half as a whole: one socket, or all of a host where there are several hosts.
struct Unit {
  int system = 0;
  std::vector<SocketPlan> sockets;
  bool upper = true;
};

/// All units of a machine, each in its half: the same number of columns in both as far as that is possible, one half
/// where there are few.
std::vector<Unit> unitsOf(const topo::Machine& machine);

/// Boxes with their texts, not yet placed. `width`: what the texts must fit into.
Box gpuBox(const topo::Machine& machine, int gpu, const Metrics& metrics);
/// `more`: other nets that the box stands for as well.
Box netBox(const topo::Machine& machine, int net, const std::vector<int>& more, const Metrics& metrics);
Box cpuBox(const topo::Machine& machine, int cpu, double width, const Metrics& metrics);
Box switchBox(const topo::Machine& machine, int node, double width, const Metrics& metrics);

}  // namespace tutti::tool
