#include "tutti_topo/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tutti_topo/draw_channels.h"
#include "tutti_topo/draw_layout.h"
#include "tutti_topo/draw_legend.h"
#include "tutti_topo/draw_svg.h"
#include "tutti_topo/draw_text.h"

namespace tutti::tool {
namespace {

constexpr std::size_t kMostHops = 150;  // of all channels that are seen together at first

constexpr const char* kStyle = R"css(
text{font-family:Helvetica,Arial,'Liberation Sans','DejaVu Sans',sans-serif;fill:#1f2933}
.c{cursor:pointer}.dim{opacity:.12}.key{cursor:pointer}.off{opacity:.35}
)css";

// Clicking a row of the legend shows or hides its channels, the pointer over it (or over the curve) dims the others.
constexpr const char* kScript = R"js(
(function(){
  var curves=[].slice.call(document.querySelectorAll('.c')),keys=[].slice.call(document.querySelectorAll('.key'));
  function of(list,b){return list.filter(function(e){return e.getAttribute('data-b')===b;});}
  function dim(b){curves.forEach(function(e){e.classList.toggle('dim',b!==null&&e.getAttribute('data-b')!==b);});}
  keys.concat(curves).forEach(function(e){
    var b=e.getAttribute('data-b');
    e.addEventListener('mouseenter',function(){dim(b);});
    e.addEventListener('mouseleave',function(){dim(null);});
  });
  keys.forEach(function(e){
    e.addEventListener('click',function(){
      var b=e.getAttribute('data-b'),off=e.classList.toggle('off');
      of(curves,b).forEach(function(c){if(off){c.setAttribute('display','none');}else{c.removeAttribute('display');}});
    });
  });
})();
)js";

/// One layer of a bundle: what runs between GPUs, or what joins them to NICs.
void drawBundle(Svg& svg, const topo::Graph& graph, const Bundle& bundle, const std::vector<Curve>& curves) {
  if (curves.empty()) return;
  const std::size_t b = curves.front().bundle;
  const std::string colour = channelColour(b);
  svg.add(R"(<g class="c" data-b="{}" fill="{}"{}>)", b, colour, bundle.shown ? "" : R"( display="none")");
  svg.tip(fmt::format("channel {}", rangesText(bundle.channels)));
  for (const Curve& curve : curves) {
    svg.add(R"(<path d="{}" fill="none" stroke="#fff" stroke-opacity="0.75" stroke-width="{:.1f}"/>)",
            pathData(curve.points, true), curve.width + 2);
  }
  for (const Curve& curve : curves) {
    svg.add(R"(<path d="{}" fill="none" stroke="{}" stroke-width="{:.1f}"/>)", pathData(curve.points, true), colour,
            curve.width);
  }
  for (const Curve& curve : curves) {
    const bool both = bothWays(graph.pattern);
    drawArrow(svg, curve, both ? 0.62 : 0.5, false);
    if (both) drawArrow(svg, curve, 0.38, true);
  }
  svg.add("</g>");
}

/// All curves. What is seen at first is arranged by itself; what a reader may add, so that all can be told apart.
std::vector<Curve> allCurves(const Layout& layout, const DrawOptions& options, const std::vector<Bundle>& bundles) {
  if (options.graph == nullptr) return {};
  std::vector<std::size_t> shown;
  std::vector<std::size_t> all;
  for (std::size_t b = 0; b < bundles.size(); ++b) {
    all.push_back(b);
    if (bundles[b].shown) shown.push_back(b);
  }
  std::vector<Curve> curves = curvesOf(layout, *options.graph, bundles, shown);
  if (shown.size() == all.size()) return curves;
  for (Curve& curve : curvesOf(layout, *options.graph, bundles, all)) {
    if (!bundles[curve.bundle].shown) curves.push_back(std::move(curve));
  }
  return curves;
}

void drawLayer(Svg& svg, const DrawOptions& options, const std::vector<Bundle>& bundles, const std::vector<Curve>& all,
               bool nets) {
  for (std::size_t b = 0; b < bundles.size(); ++b) {
    std::vector<Curve> curves;
    std::copy_if(all.begin(), all.end(), std::back_inserter(curves),
                 [&](const Curve& curve) { return curve.bundle == b && curve.toNet == nets; });
    drawBundle(svg, *options.graph, bundles[b], curves);
  }
}

void drawRow(Svg& svg, const LegendRow& row, const std::vector<Bundle>& bundles) {
  const double line = row.at.bottom() - 7;
  const double middle = line - 5;
  const bool channel = row.kind == LegendKind::Channel;
  if (channel) {
    svg.add(R"(<g class="key{}" data-b="{}"><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="#fff"/>)",
            bundles[row.bundle].shown ? "" : " off", row.bundle, row.at.x, row.at.y, row.at.w, row.at.h);
  } else {
    svg.add("<g>");
  }
  svg.tip(row.tip);
  const bool swatch = row.kind == LegendKind::Link || channel;
  if (swatch) {
    const double width = strokeWidth(static_cast<double>(row.bandwidth));
    svg.add(R"(<path d="M{:.1f} {:.1f} h36" fill="none" stroke="{}" stroke-width="{:.1f}"/>)", row.at.x, middle,
            channel ? channelColour(row.bundle) : colourOf(row.link), channel ? std::min(width, 8.0) : width);
  } else if (row.kind == LegendKind::Part) {
    const Paint paint = paintOf(row.part);
    svg.add(R"(<rect x="{:.1f}" y="{:.1f}" width="30" height="16" rx="4" fill="{}" stroke="{}"/>)", row.at.x + 3,
            middle - 8, paint.fill, paint.stroke);
  }
  const bool indented = swatch || row.kind == LegendKind::Part;
  const bool heavy = row.kind == LegendKind::Title || row.kind == LegendKind::Heading;
  svg.label({row.at.x + (indented ? kSwatch : 0), line}, row.text, legendTextSize(row.kind),
            heavy ? R"( font-weight="bold")" : "");
  svg.add("</g>");
}

Hops allHops(const DrawOptions& options, const std::vector<Bundle>& bundles) {
  Hops hops;
  for (const Bundle& bundle : bundles) {
    if (!bundle.shown) continue;
    const Hops more = hopsOf(*options.graph, *bundle.order);
    hops.insert(hops.end(), more.begin(), more.end());
  }
  return hops;
}

}  // namespace

std::string drawMachine(const topo::Machine& machine, const DrawOptions& options) {
  std::vector<Bundle> bundles;
  if (options.graph != nullptr) bundles = bundlesOf(*options.graph, options.channels, kMostHops);
  Layout layout = layoutMachine(machine, allHops(options, bundles));
  const std::vector<LegendRow> legend = placeLegend(layout, machine, options, bundles);
  Svg svg;
  svg.add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}">)",
          layout.width, layout.height);
  svg.tip(options.title);
  svg.add("<style>{}</style>", kStyle);
  svg.add(R"(<rect width="100%" height="100%" fill="#ffffff"/>)");
  const auto container = [](const Box& box) { return box.kind == BoxKind::Host || box.kind == BoxKind::Socket; };
  for (const Box& box : layout.boxes) {
    if (container(box)) drawBox(svg, box, layout.metrics);
  }
  for (const Wire& wire : layout.wires) drawWire(svg, wire);
  const std::vector<Curve> curves = allCurves(layout, options, bundles);
  drawLayer(svg, options, bundles, curves, true);  // behind the boxes: from one half to the other they cross some
  for (const Box& box : layout.boxes) {
    if (!container(box)) drawBox(svg, box, layout.metrics);
  }
  drawLayer(svg, options, bundles, curves, false);
  for (const Box& box : layout.boxes) {
    if (box.kind == BoxKind::NvSwitch) drawTitleOnTop(svg, box, layout.metrics);
  }
  for (const LegendRow& row : legend) drawRow(svg, row, bundles);
  svg.add("<script><![CDATA[{}]]></script>", kScript);
  svg.add("</svg>");
  return svg.take();
}

}  // namespace tutti::tool
