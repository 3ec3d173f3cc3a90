#include "tutti_topo/draw_svg.h"

#include <cmath>

#include "tutti_topo/draw_text.h"

namespace tutti::tool {

Paint paintOf(BoxKind kind) {
  switch (kind) {
    case BoxKind::Host:
      return {"#f4f6f9", "#c3cad5"};
    case BoxKind::Socket:
      return {"#ffffff", "#d5dbe5"};
    case BoxKind::Cpu:
      return {"#dfe7f3", "#8fa3c2"};
    case BoxKind::Switch:
      return {"#eceef1", "#a3acb9"};
    case BoxKind::Gpu:
      return {"#e4f2cf", "#6f9e25"};
    case BoxKind::Net:
      return {"#fde9cc", "#d9962f"};
    case BoxKind::NvSwitch:
      return {"#d3eaab", "#6f9e25"};
  }
  return {"#ffffff", "#000000"};
}

const char* colourOf(topo::LinkKind kind) {
  switch (kind) {
    case topo::LinkKind::NvLink:
      return "#b5da78";
    case topo::LinkKind::C2c:
      return "#c3a6e8";
    case topo::LinkKind::Pci:
      return "#a9b4c4";
    case topo::LinkKind::Sys:
      return "#e3a9a0";
    case topo::LinkKind::Local:
    case topo::LinkKind::Net:
      return "#cccccc";
  }
  return "#cccccc";
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : cleanText(text)) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string pathData(const std::vector<Point>& points, bool curved) {
  std::string data;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const char* command = i == 0 ? "M" : curved && i == 1 ? " C" : curved ? " " : " L";
    data += fmt::format("{}{:.1f} {:.1f}", command, points[i].x, points[i].y);
  }
  return data;
}

void drawBox(Svg& svg, const Box& box, const Metrics& metrics) {
  const Paint paint = paintOf(box.kind);
  const bool container = box.kind == BoxKind::Host || box.kind == BoxKind::Socket;
  svg.add(R"(<g class="{}"><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="{}" fill="{}" stroke="{}"/>)",
          container ? "box" : "part", box.at.x, box.at.y, box.at.w, box.at.h, container ? 10 : 5, paint.fill,
          paint.stroke);
  svg.tip(box.tip);
  const double x = box.at.middle();
  const double y = box.at.y + box.at.h / 2;
  constexpr const char* bold = R"( text-anchor="middle" font-weight="bold")";
  constexpr const char* plain = R"( text-anchor="middle")";
  if (box.kind == BoxKind::Host) {
    const double line = box.upper ? box.at.y + 23 : box.at.bottom() - 13;
    svg.label({box.at.x + 14, line}, box.title, 15, R"( font-weight="bold")");
  } else if (box.kind == BoxKind::Gpu && !box.detail.empty()) {
    svg.label({x, y - 12}, box.title, metrics.titleSize, bold);
    svg.label({x, y + 7}, box.detail, metrics.textSize, plain);
    svg.label({x, y + 23}, box.more, metrics.textSize, plain);
  } else if (!box.detail.empty()) {
    svg.label({x, y - 4}, box.title, metrics.textSize, bold);
    svg.label({x, y + 13}, box.detail, metrics.textSize, plain);
  } else if (!box.title.empty() && box.kind != BoxKind::NvSwitch) {
    const bool big = box.kind == BoxKind::Gpu;
    const double size = big ? metrics.titleSize : box.kind == BoxKind::Cpu ? metrics.textSize + 1 : metrics.textSize;
    const bool heavy = big || box.kind == BoxKind::Cpu;
    svg.label({x, y + size * 0.36}, box.title, size, heavy ? bold : plain);
  }
  svg.add("</g>");
}

void drawWire(Svg& svg, const Wire& wire) {
  // A local link is none that anybody waits for: a virtual NIC's.
  const bool local = wire.kind == topo::LinkKind::Local;
  svg.add(R"(<g><path d="{}" fill="none" stroke="{}" stroke-width="{:.1f}" stroke-linejoin="round"{}/>)",
          pathData(wire.points, wire.curved), colourOf(wire.kind),
          local ? 1.5 : strokeWidth(static_cast<double>(wire.bandwidth)), local ? R"( stroke-dasharray="4 3")" : "");
  svg.tip(local ? "virtual" : wire.tip);
  svg.add("</g>");
}

void drawArrow(Svg& svg, const Curve& curve, double t, bool back) {
  const Point at = pointAt(curve.points, t);
  const double angle = directionAt(curve.points, t) + (back ? M_PI : 0);
  const double size = 4.2 + curve.width * 0.95;
  const auto corner = [&](double turn, double far) {
    return Point{at.x + far * std::cos(angle + turn), at.y + far * std::sin(angle + turn)};
  };
  const Point tip = corner(0, size);
  const Point left = corner(2.45, size);
  const Point right = corner(-2.45, size);
  svg.add(R"(<path d="M{:.1f} {:.1f} L{:.1f} {:.1f} L{:.1f} {:.1f} Z" stroke="#fff" stroke-width="0.8"/>)", tip.x,
          tip.y, left.x, left.y, right.x, right.y);
}

void drawTitleOnTop(Svg& svg, const Box& box, const Metrics& metrics) {
  const double width = textWidth(box.title, metrics.titleSize, true) + 16;
  const double y = box.at.y + box.at.h / 2;
  svg.add(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="5" fill="{}" fill-opacity="0.9"/>)",
          box.at.middle() - width / 2, box.at.y + 3, width, box.at.h - 6, paintOf(box.kind).fill);
  svg.label({box.at.middle(), y + metrics.titleSize * 0.36}, box.title, metrics.titleSize,
            R"( text-anchor="middle" font-weight="bold")");
}

}  // namespace tutti::tool
