// What is between the halves of a machine's picture: the NVSwitch, NVLinks, and room for channels.
#pragma once

#include <vector>

#include "topo/machine/machine.h"
#include "tutti_topo/draw_layout.h"

namespace tutti::tool {

/// How high the fabric must be for its curves to be told apart; its width, the bar and the halves are known.
double fabricHeight(const Layout& layout, const topo::Machine& machine, const Hops& hops);

/// Adds the NVSwitch's box and the NVLinks, straight to it or in curves from GPU to GPU, each pair once. All GPUs have
/// their places.
void addFabric(Layout& layout, const topo::Machine& machine);

/// The curve (four points of a cubic Bezier) between two points at the edges of the fabric. `deeper`: pixels that this
/// one bulges more than others do.
std::vector<Point> fabricCurve(const Layout& layout, Point from, bool fromUpper, Point to, bool toUpper,
                               double deeper = 0);

}  // namespace tutti::tool
