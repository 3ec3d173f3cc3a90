// Why there is no network to reduce and gather by itself. Plain values.
#pragma once

#include <string>

namespace tutti::plugin {

/// Why a communicator's network has no collNet that can be used.
struct CollNetLack {
  std::string why;      ///< empty: it has one
  bool failed = false;  ///< it has one that does not work
};

}  // namespace tutti::plugin
