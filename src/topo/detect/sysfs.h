// CPUs, NUMA nodes and PCI functions as Linux shows them in /sys and /proc, live or recorded.
#pragma once

#include <string>

#include "topo/detect/detect.h"

namespace tutti::topo {

/// Reads `root`/sys and `root`/proc/cpuinfo; an empty root is the live system. What is not there stays unknown. PCI
/// functions that no topology needs (storage, USB and the like) are left out. Link speeds are the most that device and
/// slot can: the current ones sink when a GPU idles.
HostFacts readSysfs(const std::string& root = {});

}  // namespace tutti::topo
