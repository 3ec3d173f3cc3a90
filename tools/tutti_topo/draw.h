// A machine with the channels of an algorithm as a picture (SVG). Pure: values in, text out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topo/machine/machine.h"
#include "topo/search/graph.h"

namespace tutti::tool {

struct DrawOptions {
  std::string title;                   ///< of the picture, such as the file's name
  const topo::Graph* graph = nullptr;  ///< whose channels are drawn; null: the machine alone. Not owned
  std::vector<int> channels;  ///< those that are seen at first; empty: all, or the first ones where they are too many
  float bound = 0;            ///< GB/s that all channels together could have at most, 0: unknown
};

/// An SVG document (UTF-8). Channels that take the same way are one curve. In a browser a click on a channel in the
/// legend shows or hides it, and the pointer over it brings it to the front; everywhere else it is a still picture.
/// Channels that the graph does not have are ignored.
std::string drawMachine(const topo::Machine& machine, const DrawOptions& options);

}  // namespace tutti::tool
