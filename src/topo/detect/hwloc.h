// CPUs, NUMA nodes and PCI functions out of a file that hwloc wrote (`lstopo --whole-io machine.xml`).
#pragma once

#include <string_view>

#include "base/status.h"
#include "topo/detect/detect.h"

namespace tutti::topo {

/// The facts in the XML of hwloc 2. Its link speeds are what was measured when it was written, as GB/s: they come back
/// as the widest link of that bandwidth. `origin` is named in messages.
/// Errors: ncclInvalidUsage for a text that is not well formed, with its line, or no topology of hwloc 2.
Result<HostFacts> readHwlocXml(std::string_view text, std::string_view origin);

}  // namespace tutti::topo
