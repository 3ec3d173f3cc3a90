// CPUs, NUMA nodes, PCI functions and their devices as hwloc tells them.
#pragma once

#include <optional>
#include <string>

#include "topo/detect/detect.h"

namespace tutti::topo {

/// The facts of this machine, which are those of readSysfs(root). What hwloc does not tell is taken from there: the
/// whole class of functions and the most that a link can. A `root` other than "" is read if HWLOC_FSROOT names it.
/// Empty where there is no hwloc, where it fails (a warning says so), looks at another machine (HWLOC_SYNTHETIC and the
/// like), or does not see all that the system shows; `why` says so then. Any thread.
std::optional<HostFacts> readHwloc(const std::string& root, std::string& why);

/// The facts in the XML of hwloc 2 (`lstopo --whole-io machine.xml`). Its link speeds are what was measured when it was
/// written, as GB/s: they come back as the widest link of that bandwidth. Empty where there is no hwloc, or for a text
/// that is not as hwloc writes it; `why` says so then.
std::optional<HostFacts> readHwlocXml(const std::string& text, std::string& why);

}  // namespace tutti::topo
