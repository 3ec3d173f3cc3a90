// Where everything of a machine stands in its picture. Pure: a machine in, boxes and lines out.
//
//   +- host ---------------------------------+    Sockets (or, of several hosts, whole hosts) stand in two halves that
//   | +- CPU ------------+ +- CPU ---------+ |    face each other, GPUs inwards. Between them lies the fabric: NVLinks,
//   | |  switch   switch | |               | |    the NVSwitch as a bar, and the channels. A column holds one GPU and
//   | |  NIC      NIC    | |               | |    one NIC at most, so no line crosses a box.
//   | |  GPU GPU  GPU GPU| |               | |
//   | +------------------+ +---------------+ |    Few columns on one host: there is no lower half.
//   |       ===== NVSwitch =====             |
//   |    the other half, upside down         |
//   +----------------------------------------+
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "topo/machine/machine.h"

namespace tutti::tool {

/// Pixels, from the upper left corner.
struct Point {
  double x = 0;
  double y = 0;
};

struct Rect {
  double x = 0, y = 0, w = 0, h = 0;
  double right() const { return x + w; }
  double bottom() const { return y + h; }
  double middle() const { return x + w / 2; }
};

enum class BoxKind : std::uint8_t { Host, Socket, Cpu, Switch, Gpu, Net, NvSwitch };

/// A node's box (Host: `node` is the system's number; Socket: the CPU's, around all that hangs under it). Title and
/// detail fit into it.
struct Box {
  BoxKind kind = BoxKind::Host;
  int node = -1;
  Rect at;
  bool upper = true;  ///< in the upper half: its fabric is below it
  std::string title;
  std::string detail;  ///< second line, may be empty
  std::string more;    ///< third line, may be empty
  std::string tip;     ///< what a browser shows over it
};

/// A link of the machine. Two points: straight; more: a cubic curve of four points or corners of a line.
struct Wire {
  topo::LinkKind kind = topo::LinkKind::Local;
  float bandwidth = 0;  ///< GB/s
  bool curved = false;
  std::vector<Point> points;
  std::string tip;
};

/// Sizes that depend on how much there is to show.
struct Metrics {
  double column = 132, gpuWidth = 112, gpuHeight = 66, netWidth = 82, netHeight = 42;
  double cpuHeight = 32, switchHeight = 28, gap = 26, pad = 12;
  double titleSize = 16, textSize = 12;
};

struct Layout {
  Metrics metrics;
  double width = 0;
  double height = 0;
  Rect fabric;     ///< between the halves, or below the only one
  double bar = 0;  ///< height of the NVSwitch bar in the middle of the fabric (of the bottom, with one half), 0: none
  bool halves = false;
  std::vector<Box> boxes;  ///< containers before what they contain
  std::vector<Wire> wires;
  std::vector<int> boxOf;  ///< box of each node, -1: not drawn

  const Box* find(int node) const {
    const int box = boxOf[static_cast<std::size_t>(node)];
    return box < 0 ? nullptr : &boxes[static_cast<std::size_t>(box)];
  }
};

/// Pairs of nodes that the picture will join by curves: the lower half is turned round where that makes them shorter.
using Hops = std::vector<std::pair<int, int>>;

/// Places a machine. Its upper left corner is (0, 0).
Layout layoutMachine(const topo::Machine& machine, const Hops& hops);

}  // namespace tutti::tool
