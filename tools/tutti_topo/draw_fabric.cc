#include "tutti_topo/draw_fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tutti_topo/draw_tree.h"

namespace tutti::tool {
namespace {

void placeNvSwitch(Layout& out, const topo::Machine& machine) {
  if (out.bar <= 0) return;
  Box bar{.kind = BoxKind::NvSwitch, .node = machine.nodes(topo::NodeKind::NvSwitch)[0]};
  const double y = out.halves ? out.fabric.y + (out.fabric.h - out.bar) / 2 : out.fabric.bottom() - out.bar - 14;
  bar.at = {out.fabric.x, y, out.fabric.w, out.bar};
  bar.title = "NVSwitch";
  out.boxOf[static_cast<std::size_t>(bar.node)] = static_cast<int>(out.boxes.size());
  out.boxes.push_back(std::move(bar));
}

const Box* deviceBox(const topo::Machine& machine, const Layout& layout, int device) {
  for (const int gpu : machine.nodes(topo::NodeKind::Gpu)) {
    if (machine.facts<topo::GpuFacts>(gpu).device == device) return layout.find(gpu);
  }
  return nullptr;
}

/// NVLinks run inside the fabric: straight to the bar, or in curves from GPU to GPU, each pair once.
void placeNvLinks(Layout& out, const topo::Machine& machine) {
  for (const int gpu : machine.nodes(topo::NodeKind::Gpu)) {
    const Box* box = out.find(gpu);
    if (box == nullptr) continue;
    const Point from{box->at.middle(), box->upper ? box->at.bottom() : box->at.y};
    for (const int number : machine.node(machine.facts<topo::GpuFacts>(gpu).device).links) {
      const topo::Link& link = machine.link(number);
      if (link.kind != topo::LinkKind::NvLink) continue;
      Wire wire{.kind = link.kind, .bandwidth = link.bandwidth};
      wire.tip = fmt::format("NVLink {} GB/s", bandwidthText(link.bandwidth));
      if (const Box* bar = out.find(link.to); bar != nullptr && bar->kind == BoxKind::NvSwitch) {
        wire.points = {from, {from.x, box->upper ? bar->at.y : bar->at.bottom()}};
        out.wires.push_back(std::move(wire));
        continue;
      }
      const Box* other = deviceBox(machine, out, link.to);
      if (other == nullptr || (link.to < link.from && link.reverse >= 0)) continue;
      const Point to{other->at.middle(), other->upper ? other->at.bottom() : other->at.y};
      wire.curved = true;
      wire.points = fabricCurve(out, from, box->upper, to, other->upper);
      out.wires.push_back(std::move(wire));
    }
  }
}

/// How far an arc's control points are from its ends; the arc itself bulges three quarters of that.
double arcDepth(double distance) {
  return 28 + distance * 0.26;
}

/// Is there anything to run between GPUs?
bool joinsGpus(const topo::Machine& machine, const Hops& hops) {
  const auto isGpu = [&](int node) { return machine.node(node).kind() == topo::NodeKind::Gpu; };
  for (const auto& [from, to] : hops) {
    if (isGpu(from) && isGpu(to)) return true;
  }
  for (int i = 0; i < machine.linkCount(); ++i) {
    const topo::Link& link = machine.link(i);
    const bool devices = machine.node(link.from).kind() == topo::NodeKind::Device &&
                         machine.node(link.to).kind() == topo::NodeKind::Device;
    if (devices && link.kind == topo::LinkKind::NvLink) return true;
  }
  return false;
}

}  // namespace

double fabricHeight(const Layout& out, const topo::Machine& machine, const Hops& hops) {
  if (!joinsGpus(machine, hops) && out.bar <= 0) return out.halves ? 40 : 16;
  const double wide = std::clamp(out.fabric.w * 0.12, 0.0, 130.0);
  if (out.halves) return 210 + wide + 1.5 * out.bar;
  return std::min(120 + wide, arcDepth(out.fabric.w) * 0.75 + 40) + 1.5 * out.bar;
}

void addFabric(Layout& layout, const topo::Machine& machine) {
  placeNvSwitch(layout, machine);
  placeNvLinks(layout, machine);
}

std::vector<Point> fabricCurve(const Layout& layout, Point from, bool fromUpper, Point to, bool toUpper,
                               double deeper) {
  const double distance = std::abs(to.x - from.x);
  if (fromUpper != toUpper) {
    const double bend = layout.fabric.h * 0.5 * (fromUpper ? 1 : -1);
    return {from, {from.x, from.y + bend}, {to.x, to.y - bend}, to};
  }
  const double room = layout.halves ? layout.fabric.h / 2 - layout.bar / 2 - 8 : layout.fabric.h - layout.bar - 34;
  const double pad = layout.metrics.pad * (layout.fabric.h > 0 ? 1 : 0);
  const double depth = std::min(arcDepth(distance) + deeper, (room + pad) / 0.75) * (fromUpper ? 1 : -1);
  const double lean = std::min(distance * 0.15, 40.0) * (to.x > from.x ? 1 : -1);
  return {from, {from.x + lean, from.y + depth}, {to.x - lean, to.y + depth}, to};
}

}  // namespace tutti::tool
