#include "tutti_topo/draw_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tutti_topo/draw_fabric.h"
#include "tutti_topo/draw_sockets.h"
#include "tutti_topo/draw_tree.h"

namespace tutti::tool {
namespace {

constexpr double kMargin = 20;
constexpr double kHostTitle = 34;
constexpr double kLane = 26;  // beside the sockets of a host, for the link between CPUs of both halves

/// Where the parts of one half stand, measured from its outer edge inwards.
struct Depths {
  double socket = 0, cpu = 0, firstSwitch = 0, net = 0, gpu = 0, end = 0;
};

/// Everything that is worked on while a machine is laid out.
struct Work {
  const topo::Machine& machine;
  std::vector<Unit> units;
  Depths depths;
  Layout out;
};

Metrics metricsFor(int gpus) {
  Metrics m;
  if (gpus <= 8) return m;
  if (gpus <= 16) {
    m.column = 98, m.gpuWidth = 86, m.netWidth = 66;
    return m;
  }
  m.column = 50, m.gpuWidth = 44, m.gpuHeight = 40, m.netWidth = 26, m.netHeight = 26;
  m.titleSize = 15, m.pad = 6;
  return m;
}

bool compact(const Layout& layout) {
  return layout.metrics.column < 60;
}

Depths depthsOf(const Work& work) {
  const Metrics& m = work.out.metrics;
  int levels = 0;
  bool nets = false;
  for (const Unit& unit : work.units) {
    for (const SocketPlan& socket : unit.sockets) {
      levels = std::max(levels, socket.levels);
      nets = nets || socket.nets;
    }
  }
  Depths d;
  d.socket = work.machine.systems() > 1 ? kHostTitle : 0;
  d.cpu = d.socket + m.pad;
  d.firstSwitch = d.cpu + m.cpuHeight + m.gap;
  d.net = d.firstSwitch + levels * (m.switchHeight + m.gap);
  d.gpu = nets ? d.net + m.netHeight + m.gap + 6 : d.net;
  d.end = d.gpu + m.gpuHeight + m.pad;
  if (work.machine.systems() > 1) d.end += m.pad;
  return d;
}

double socketWidth(const Metrics& m, const SocketPlan& socket) {
  return 2 * m.pad + m.column * static_cast<double>(socket.columns.size());
}

double unitWidth(const Work& work, const Unit& unit) {
  const Metrics& m = work.out.metrics;
  double width = work.machine.systems() > 1 ? 2 * m.pad : 0;
  for (const SocketPlan& socket : unit.sockets) width += socketWidth(m, socket);
  return width + static_cast<double>(unit.sockets.size() - 1) * m.pad * 2;
}

double halfWidth(const Work& work, bool upper) {
  double width = -work.out.metrics.pad * 2;
  for (const Unit& unit : work.units) {
    if (unit.upper == upper) width += unitWidth(work, unit) + work.out.metrics.pad * 2;
  }
  return std::max(width, 0.0);
}

/// Turns a distance from the outer edge of a half into a place in the picture.
Rect placed(const Work& work, bool upper, double depth, Rect at) {
  const double top = work.out.fabric.y - work.depths.end;
  const double bottom = work.out.fabric.bottom() + work.depths.end;
  at.y = upper ? top + depth : bottom - depth - at.h;
  return at;
}

void addBox(Work& work, Box box, bool isNode) {
  if (isNode) work.out.boxOf[static_cast<std::size_t>(box.node)] = static_cast<int>(work.out.boxes.size());
  work.out.boxes.push_back(std::move(box));
}

/// A straight line at `x` between the facing edges of two boxes of one half.
Wire verticalWire(const Box& outer, const Box& inner, double x, const topo::Link& link) {
  Wire wire{.kind = link.kind, .bandwidth = link.bandwidth};
  wire.points = {{x, inner.upper ? outer.at.bottom() : outer.at.y}, {x, inner.upper ? inner.at.y : inner.at.bottom()}};
  return wire;
}

void joinToParent(Work& work, int parent, int hardware, int shown, double x) {
  const Box* outer = work.out.find(parent);
  const Box* inner = work.out.find(shown);
  if (outer == nullptr || inner == nullptr) return;
  for (const int number : work.machine.node(parent).links) {
    const topo::Link& link = work.machine.link(number);
    if (link.to != hardware || (link.kind != topo::LinkKind::Pci && link.kind != topo::LinkKind::Local)) continue;
    Wire wire = verticalWire(*outer, *inner, x, link);
    wire.tip = fmt::format("{} {} GB/s", linkKindText(link.kind), bandwidthText(link.bandwidth));
    work.out.wires.push_back(std::move(wire));
    return;
  }
}

/// C2C, or NVLink where CPUs have it, from the CPU to a GPU.
void joinToCpu(Work& work, int cpu, int device, int gpu, double x) {
  const Box* outer = work.out.find(cpu);
  const Box* inner = work.out.find(gpu);
  for (const topo::LinkKind kind : {topo::LinkKind::C2c, topo::LinkKind::NvLink}) {
    const float bandwidth = linkBandwidth(work.machine, cpu, device, kind);
    if (bandwidth <= 0 || outer == nullptr || inner == nullptr) continue;
    Wire wire = verticalWire(*outer, *inner, x, topo::Link{.kind = kind, .bandwidth = bandwidth});
    wire.tip = fmt::format("{} {} GB/s", linkKindText(kind), bandwidthText(bandwidth));
    work.out.wires.push_back(std::move(wire));
  }
}

/// The box and the lines of one column: x is its left edge.
void placeColumn(Work& work, const SocketPlan& socket, const Column& column, bool upper, double x) {
  const Metrics& m = work.out.metrics;
  const double left = x + (m.column - m.gpuWidth) / 2;
  if (column.net >= 0) {
    Box box = netBox(work.machine, column.net, column.moreNets, m);
    box.upper = upper;
    box.at = placed(work, upper, work.depths.net, {left, 0, m.netWidth, m.netHeight});
    addBox(work, std::move(box), true);
    for (const int other : column.moreNets) {
      work.out.boxOf[static_cast<std::size_t>(other)] = work.out.boxOf[static_cast<std::size_t>(column.net)];
    }
    joinToParent(work, column.netParent, column.nic, column.net, left + m.netWidth / 2);
  }
  if (column.gpu >= 0) {
    Box box = gpuBox(work.machine, column.gpu, m);
    box.upper = upper;
    box.at = placed(work, upper, work.depths.gpu, {left, 0, m.gpuWidth, m.gpuHeight});
    addBox(work, std::move(box), true);
    const int device = work.machine.facts<topo::GpuFacts>(column.gpu).device;
    const double beside = left + (m.gpuWidth + m.netWidth) / 2;
    joinToParent(work, column.gpuParent, device, column.gpu, compact(work.out) ? beside - 5 : beside + 5);
    joinToCpu(work, socket.cpu, device, column.gpu, compact(work.out) ? beside + 3 : beside - 7);
  }
}

void placeSocket(Work& work, const SocketPlan& socket, bool upper, double x) {
  const Metrics& m = work.out.metrics;
  const double width = socketWidth(m, socket);
  const double height = work.depths.gpu + m.gpuHeight + m.pad - work.depths.socket;
  const double first = x + m.pad;
  Box outline{.kind = BoxKind::Socket, .node = socket.cpu, .upper = upper};
  outline.at = placed(work, upper, work.depths.socket, {x, 0, width, height});
  addBox(work, std::move(outline), false);
  Box cpu = cpuBox(work.machine, socket.cpu, width - 2 * m.pad, m);
  cpu.upper = upper;
  cpu.at = placed(work, upper, work.depths.cpu, {first, 0, width - 2 * m.pad, m.cpuHeight});
  addBox(work, std::move(cpu), true);
  for (const SwitchSpan& span : socket.switches) {
    const double w = m.column * span.columns - (m.column - m.gpuWidth);
    Box box = switchBox(work.machine, span.node, w, m);
    box.upper = upper;
    box.at = placed(work, upper, work.depths.firstSwitch + span.level * (m.switchHeight + m.gap),
                    {first + m.column * span.first + (m.column - m.gpuWidth) / 2, 0, w, m.switchHeight});
    const double middle = box.at.middle();
    addBox(work, std::move(box), true);
    joinToParent(work, span.parent, span.node, span.node, middle);
  }
  for (std::size_t c = 0; c < socket.columns.size(); ++c) {
    placeColumn(work, socket, socket.columns[c], upper, first + m.column * static_cast<double>(c));
  }
}

void placeUnit(Work& work, const Unit& unit, double x) {
  const Metrics& m = work.out.metrics;
  const bool several = work.machine.systems() > 1;
  if (several) {
    Box host{.kind = BoxKind::Host, .node = unit.system, .upper = unit.upper};
    host.title = fmt::format("host {}", unit.system);
    host.at = placed(work, unit.upper, 0, {x, 0, unitWidth(work, unit), work.depths.end});
    addBox(work, std::move(host), false);
    x += m.pad;
  }
  int before = -1;
  for (const SocketPlan& socket : unit.sockets) {
    placeSocket(work, socket, unit.upper, x);
    x += socketWidth(m, socket) + 2 * m.pad;
    const float sys = before < 0 ? 0 : linkBandwidth(work.machine, before, socket.cpu, topo::LinkKind::Sys);
    if (sys > 0) {
      const Rect a = work.out.find(before)->at;
      const Rect b = work.out.find(socket.cpu)->at;
      work.out.wires.push_back(
          {topo::LinkKind::Sys, sys, false, {{a.right(), a.y + a.h / 2}, {b.x, b.y + b.h / 2}}, ""});
    }
    before = socket.cpu;
  }
}

/// The link between the CPUs of both halves of one host, down a lane beside the sockets; and between neighbours.
void joinSockets(Work& work) {
  const Work& w = work;
  for (std::size_t u = 1; u < w.units.size(); ++u) {
    const Unit& before = w.units[u - 1];
    const Unit& unit = w.units[u];
    const int a = before.sockets.front().cpu;
    const int b = unit.sockets.front().cpu;
    const float sys = linkBandwidth(w.machine, a, b, topo::LinkKind::Sys);
    if (sys <= 0) continue;
    const Rect& from = w.out.find(a)->at;
    const Rect& to = w.out.find(b)->at;
    Wire wire{.kind = topo::LinkKind::Sys, .bandwidth = sys, .tip = "between all CPUs of the host"};
    if (before.upper == unit.upper) {
      const bool right = to.x > from.x;
      wire.points = {{right ? from.right() : from.x, from.y + from.h / 2},
                     {right ? to.x : to.right(), to.y + to.h / 2}};
    } else {
      const Rect& first = w.out.find(w.units.front().sockets.front().cpu)->at;
      double left = std::min(first.x, to.x);
      Rect lower = to;
      for (const Unit& other : w.units) {
        if (other.upper) continue;
        const Rect& at = w.out.find(other.sockets.front().cpu)->at;
        if (at.x <= lower.x) lower = at;
        left = std::min(left, at.x);
      }
      const double x = left - w.out.metrics.pad - kLane / 2;
      wire.points = {{first.x, first.y + first.h / 2},
                     {x, first.y + first.h / 2},
                     {x, lower.y + lower.h / 2},
                     {lower.x, lower.y + lower.h / 2}};
    }
    work.out.wires.push_back(std::move(wire));
  }
}

void mirrorLower(Work& work) {
  const double sum = 2 * work.out.fabric.x + work.out.fabric.w;
  for (Box& box : work.out.boxes) {
    if (!box.upper && box.kind != BoxKind::NvSwitch) box.at.x = sum - box.at.right();
  }
  const double middle = work.out.fabric.y + work.out.fabric.h / 2;
  for (Wire& wire : work.out.wires) {
    for (Point& point : wire.points) {
      if (point.y > middle) point.x = sum - point.x;
    }
  }
}

double lengthOf(const Layout& layout, const Hops& hops) {
  double sum = 0;
  for (const auto& [from, to] : hops) {
    const Box* a = layout.find(from);
    const Box* b = layout.find(to);
    if (a != nullptr && b != nullptr) sum += std::abs(a->at.middle() - b->at.middle());
  }
  return sum;
}

void placeHalves(Work& work) {
  double x[2] = {};
  for (const bool upper : {false, true}) {
    x[upper] = work.out.fabric.x + (work.out.fabric.w - halfWidth(work, upper)) / 2;
  }
  for (const Unit& unit : work.units) {
    placeUnit(work, unit, x[unit.upper]);
    x[unit.upper] += unitWidth(work, unit) + 2 * work.out.metrics.pad;
  }
}

}  // namespace

Layout layoutMachine(const topo::Machine& machine, const Hops& hops) {
  Work work{machine, unitsOf(machine), {}, {}};
  Layout& out = work.out;
  out.metrics = metricsFor(static_cast<int>(machine.nodes(topo::NodeKind::Gpu).size()));
  out.boxOf.assign(static_cast<std::size_t>(machine.nodeCount()), -1);
  out.halves = std::any_of(work.units.begin(), work.units.end(), [](const Unit& unit) { return !unit.upper; });
  out.bar = machine.nodes(topo::NodeKind::NvSwitch).empty() ? 0 : 34;
  work.depths = depthsOf(work);
  const bool one = machine.systems() == 1;
  const double lane = one && out.halves ? kLane : 0;
  const double inset = one ? kMargin + 18 : kMargin;
  out.fabric.x = inset + lane;
  out.fabric.w = std::max({halfWidth(work, true), halfWidth(work, false), 220.0});
  out.fabric.y = (one ? kMargin + kHostTitle + 6 : kMargin) + work.depths.end;
  out.fabric.h = fabricHeight(out, machine, hops);
  out.width = out.fabric.right() + inset;
  out.height = out.fabric.bottom() + (out.halves ? work.depths.end : 0) + (one ? kMargin + 18 : kMargin);
  if (one) {
    Box host{.kind = BoxKind::Host, .node = 0, .title = "host"};
    host.at = {kMargin, kMargin, out.width - 2 * kMargin, out.height - 2 * kMargin};
    addBox(work, std::move(host), false);
  }
  placeHalves(work);
  const double asItIs = lengthOf(out, hops);
  mirrorLower(work);
  if (lengthOf(out, hops) >= asItIs) mirrorLower(work);
  if (one) joinSockets(work);
  addFabric(out, machine);
  return std::move(work.out);
}

}  // namespace tutti::tool
