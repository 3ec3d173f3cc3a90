#include "tutti_topo/draw_channels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "tutti_topo/draw_fabric.h"
#include "tutti_topo/draw_text.h"

namespace tutti::tool {
namespace {

constexpr std::array<const char*, 16> kColours = {"#d62839", "#1f6fd0", "#f08a00", "#7b3fc4", "#00a3a3", "#d6409f",
                                                  "#8a5a2b", "#2b3a8c", "#4f9d00", "#e06a5a", "#5aa0e6", "#b58900",
                                                  "#a678de", "#0f6e5c", "#8c1d40", "#6b7280"};

bool sameWay(const topo::GraphChannel& a, const topo::GraphChannel& b) {
  return a.gpus == b.gpus && a.netIn == b.netIn && a.netOut == b.netOut;
}

bool isStar(topo::Pattern pattern) {
  return pattern == topo::Pattern::Nvls || pattern == topo::Pattern::CollNetDirect;
}

/// One curve to be, with the places where it leaves and arrives.
struct Piece {
  std::size_t bundle = 0;
  const Box* from = nullptr;
  const Box* to = nullptr;
  Point start;
  Point end;
};

/// An end of a piece at a box: what it goes to decides where it stands at the box's edge.
struct End {
  std::size_t piece = 0;
  bool start = true;
  const Box* other = nullptr;
};

bool isNet(const Piece& piece) {
  return piece.from->kind == BoxKind::Net || piece.to->kind == BoxKind::Net;
}

/// Ends are ordered so that curves of one box do not cross: arcs to the left (near ones first), straight ones to the
/// other half, arcs to the right (far ones first). Of arcs to one box the later ones are outside.
bool before(const Box& box, const End& a, const End& b) {
  const auto direction = [&](const Box& other) { return other.upper != box.upper ? 1 : other.at.x < box.at.x ? 0 : 2; };
  const int da = direction(*a.other);
  const int db = direction(*b.other);
  if (da != db) return da < db;
  if (a.other != b.other) return da == 1 ? a.other->at.x < b.other->at.x : a.other->at.x > b.other->at.x;
  return da == 2 ? a.piece > b.piece : a.piece < b.piece;
}

/// Gives the ends at one box their places; returns the distance between two.
double placeEnds(const Box& box, std::vector<End>& ends, std::vector<Piece>& pieces) {
  std::sort(ends.begin(), ends.end(), [&](const End& a, const End& b) { return before(box, a, b); });
  const double spacing = box.at.w / static_cast<double>(ends.size() + 1);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Point at{box.at.x + spacing * static_cast<double>(i + 1), box.upper ? box.at.bottom() : box.at.y};
    (ends[i].start ? pieces[ends[i].piece].start : pieces[ends[i].piece].end) = at;
  }
  return spacing;
}

double placeGpuEnds(std::vector<Piece>& pieces, double widest) {
  std::map<const Box*, std::vector<End>> ends;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (isNet(pieces[i])) continue;
    ends[pieces[i].from].push_back({i, true, pieces[i].to});
    ends[pieces[i].to].push_back({i, false, pieces[i].from});
  }
  double closest = widest;
  for (auto& [box, list] : ends) closest = std::min(closest, placeEnds(*box, list, pieces));
  return closest;
}

/// Between a NIC and a GPU, at their facing edges; straight where the one stands over the other.
Curve netCurve(const Piece& piece, double share) {
  const bool down = piece.from->kind == BoxKind::Net;
  const Box& net = down ? *piece.from : *piece.to;
  const Box& gpu = down ? *piece.to : *piece.from;
  const Point atNet{net.at.x + net.at.w * share, net.upper ? net.at.bottom() : net.at.y};
  const bool over = atNet.x > gpu.at.x && atNet.x < gpu.at.right();
  const Point atGpu{over ? atNet.x : gpu.at.x + gpu.at.w * share, gpu.upper ? gpu.at.y : gpu.at.bottom()};
  const Point a = down ? atNet : atGpu;
  const Point b = down ? atGpu : atNet;
  const double bend = (b.y - a.y) * 0.5;
  return {piece.bundle, {a, {a.x, a.y + bend}, {b.x, b.y - bend}, b}, 2, true};
}

}  // namespace

std::vector<Bundle> bundlesOf(const topo::Graph& graph, const std::vector<int>& selected, std::size_t mostHops) {
  std::vector<Bundle> bundles;
  for (int c = 0; c < graph.nChannels(); ++c) {
    const topo::GraphChannel& channel = graph.channels[static_cast<std::size_t>(c)];
    auto same = std::find_if(bundles.begin(), bundles.end(),
                             [&](const Bundle& bundle) { return sameWay(*bundle.order, channel); });
    if (same == bundles.end()) same = bundles.insert(same, Bundle{.channels = {}, .order = &channel});
    same->channels.push_back(c);
    same->bandwidth += graph.bwIntra;
  }
  std::size_t hops = 0;
  for (const Bundle& bundle : bundles) hops += hopsOf(graph, *bundle.order).size();
  const bool tooMany = hops > mostHops;
  std::size_t seen = 0;
  for (Bundle& bundle : bundles) {
    const std::size_t more = hopsOf(graph, *bundle.order).size();
    bundle.shown = selected.empty() && (!tooMany || seen == 0 || seen + more <= mostHops / 2);
    seen += bundle.shown ? more : mostHops;  // the first ones, without gaps
    for (const int c : selected) {
      bundle.shown =
          bundle.shown || std::find(bundle.channels.begin(), bundle.channels.end(), c) != bundle.channels.end();
    }
  }
  return bundles;
}

Hops hopsOf(const topo::Graph& graph, const topo::GraphChannel& channel) {
  Hops hops;
  if (channel.gpus.empty()) return hops;
  if (channel.netIn >= 0) hops.emplace_back(channel.netIn, channel.gpus.front());
  for (std::size_t i = 1; i < channel.gpus.size(); ++i) {
    hops.emplace_back(isStar(graph.pattern) ? channel.gpus.front() : channel.gpus[i - 1], channel.gpus[i]);
  }
  const bool ring = graph.pattern == topo::Pattern::Ring;
  if (ring && channel.netIn < 0 && channel.gpus.size() > 1) {
    hops.emplace_back(channel.gpus.back(), channel.gpus.front());
  }
  if (ring && channel.netOut >= 0) hops.emplace_back(channel.gpus.back(), channel.netOut);
  return hops;
}

bool bothWays(topo::Pattern pattern) {
  return pattern != topo::Pattern::Ring;
}

std::vector<Curve> curvesOf(const Layout& layout, const topo::Graph& graph, const std::vector<Bundle>& bundles,
                            const std::vector<std::size_t>& which) {
  std::vector<Piece> pieces;
  for (const std::size_t bundle : which) {
    for (const auto& [from, to] : hopsOf(graph, *bundles[bundle].order)) {
      const Box* a = layout.find(from);
      const Box* b = layout.find(to);
      if (a != nullptr && b != nullptr) pieces.push_back({bundle, a, b, {}, {}});
    }
  }
  const double room =
      std::min(placeGpuEnds(pieces, 15), layout.metrics.netWidth / (1.0 + static_cast<double>(which.size()))) * 0.55;
  std::map<std::pair<const Box*, const Box*>, int> before;  // pieces that join the same two boxes
  std::vector<Curve> curves;
  for (const Piece& piece : pieces) {
    Curve curve;
    if (isNet(piece)) {
      const auto place = std::find(which.begin(), which.end(), piece.bundle) - which.begin();
      curve = netCurve(piece, (static_cast<double>(place) + 1) / (static_cast<double>(which.size()) + 1));
    } else {
      const int inside = before[std::minmax(piece.from, piece.to)]++;
      curve = {piece.bundle,
               fabricCurve(layout, piece.start, piece.from->upper, piece.end, piece.to->upper, inside * 5.0)};
    }
    curve.width = std::clamp(strokeWidth(bundles[piece.bundle].bandwidth), 1.6, std::clamp(room, 1.6, 8.0));
    curves.push_back(std::move(curve));
  }
  return curves;
}

Point pointAt(const std::vector<Point>& c, double t) {
  const double s = 1 - t;
  const double k[4] = {s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t};
  Point p;
  for (std::size_t i = 0; i < 4; ++i) p.x += k[i] * c[i].x, p.y += k[i] * c[i].y;
  return p;
}

double directionAt(const std::vector<Point>& curve, double t) {
  const Point a = pointAt(curve, std::max(0.0, t - 0.01));
  const Point b = pointAt(curve, std::min(1.0, t + 0.01));
  return std::atan2(b.y - a.y, b.x - a.x);
}

std::string rangesText(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ' ';
    text += std::to_string(numbers[i]);
    if (last > i) text += (last == i + 1 ? " " : "–") + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string channelColour(std::size_t index) {
  if (index < kColours.size()) return kColours[index];
  // Beyond the table: steps of the golden angle round the colour circle, two lightnesses.
  const double hue = std::fmod(static_cast<double>(index) * 137.508, 360.0);
  const double light = index % 2 == 0 ? 0.42 : 0.55;
  const auto part = [&](double n) {
    const double k = std::fmod(n + hue / 30, 12.0);
    const double a = 0.65 * std::min(light, 1 - light);
    return static_cast<int>(255 * (light - a * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}))));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", part(0), part(8), part(4));
}

}  // namespace tutti::tool
