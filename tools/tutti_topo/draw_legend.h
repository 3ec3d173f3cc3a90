// What the picture of a machine says in words: a legend beside it, or below it where it is wide. Pure.
#pragma once

#include <string>
#include <vector>

#include "tutti_topo/draw.h"
#include "tutti_topo/draw_channels.h"
#include "tutti_topo/draw_layout.h"

namespace tutti::tool {

enum class LegendKind : std::uint8_t { Title, Heading, Text, Link, Part, Channel };

struct LegendRow {
  LegendKind kind = LegendKind::Text;
  Rect at;                 ///< the swatch stands at its left
  std::string text;        ///< fits into the row
  std::string tip;         ///< full text where it was shortened
  topo::LinkKind link{};   ///< Link
  float bandwidth = 0;     ///< Link: GB/s; Channel: of the bundle
  BoxKind part{};          ///< Part: which kind of box
  std::size_t bundle = 0;  ///< Channel
};

/// Height of a row, and what its text begins behind.
inline constexpr double kSwatch = 46;
/// Font size of a row's text.
double legendTextSize(LegendKind kind);

/// The rows with their places; grows the layout's width and height so that they are inside.
std::vector<LegendRow> placeLegend(Layout& layout, const topo::Machine& machine, const DrawOptions& options,
                                   const std::vector<Bundle>& bundles);

}  // namespace tutti::tool
