// The facts of the machine that this process runs on, gathered from hwloc or /sys, the driver and NVML.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "gpu/driver.h"
#include "topo/detect/detect.h"

namespace tutti::topo {

/// Where a VM's provider puts its description of the machine.
inline constexpr const char* kVirtualTopologyFile = "/var/run/nvidia-topologyd/virtualTopology.xml";

struct LiveRequest {
  const gpu::Driver* driver = nullptr;              ///< null: only the host and what NVML knows
  std::string topologyFile;                         ///< NCCL_TOPO_FILE; empty: kVirtualTopologyFile, if it is there
  std::optional<std::vector<NetDeviceFacts>> nets;  ///< of the network plugins; empty: there are none yet
  std::string systemRoot;                           ///< folder with sys/ and proc/; empty: "/"
  bool hwloc = true;                                ///< false: not even where it is installed
};

/// Asks everybody. What is missing or does not answer is an INFO line (GRAPH) that says what is then unknown. The host
/// is read by hwloc, and where that is missing or fails from /sys, which gives the same. Where the system shows no PCI
/// functions or no NUMA nodes, the file of hwloc that HWLOC_XMLFILE names stands in; a warning says that it cannot be
/// used. Errors: none for missing sources; ncclInvalidUsage for a topology file that is broken, ncclSystemError for one
/// that is there and cannot be read.
Result<DetectInput> gatherFacts(const LiveRequest& request);

/// What was found out about this machine.
struct LiveTopology {
  XmlElement xml;
  std::vector<PeerRefusal> peersRefused;  ///< for P2pStatus::refused
};

/// gatherFacts, then detectTopology. Empty on a software GPU without SOFTGPU_TOPO: nothing is known, and the host's
/// hardware says nothing about simulated devices. Reads files: a few milliseconds; any thread.
Result<std::optional<LiveTopology>> detectLive(const LiveRequest& request);

}  // namespace tutti::topo
