// The pieces of an SVG document that a machine's picture is made of.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tutti_topo/draw_channels.h"
#include "tutti_topo/draw_layout.h"

namespace tutti::tool {

/// Colours of a kind of box: "#rrggbb".
struct Paint {
  const char* fill;
  const char* stroke;
};
Paint paintOf(BoxKind kind);
const char* colourOf(topo::LinkKind kind);

/// cleanText(), and as XML takes it.
std::string escaped(const std::string& text);

/// Collects the document.
class Svg {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  void tip(const std::string& text) {
    if (!text.empty()) add("<title>{}</title>", escaped(text));
  }
  void label(Point at, const std::string& text, double size, const char* rest) {
    if (text.empty()) return;
    add(R"(<text x="{:.1f}" y="{:.1f}" font-size="{:g}"{}>{}</text>)", at.x, at.y, size, rest, escaped(text));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// The `d` of a path through the points: a cubic curve, or straight lines.
std::string pathData(const std::vector<Point>& points, bool curved);

void drawBox(Svg& svg, const Box& box, const Metrics& metrics);
void drawWire(Svg& svg, const Wire& wire);
/// A triangle on the curve at `t` (0 to 1), pointing along it or back.
void drawArrow(Svg& svg, const Curve& curve, double t, bool back);
/// A box's title alone, over whatever crosses the box.
void drawTitleOnTop(Svg& svg, const Box& box, const Metrics& metrics);

}  // namespace tutti::tool
