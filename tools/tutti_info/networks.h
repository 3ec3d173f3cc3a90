// tutti-info net: what the library sees of the networks of this host, and what it would take and why. The parts of its
// text, each of which stands on its own and ends with a line's end; made by the library's own code.
#pragma once

#include <string>

namespace tutti {
struct Params;
}
namespace tutti::comm {
class CommNetwork;
}
namespace tutti::gpu {
struct Driver;
}

namespace tutti::tool {

/// The CUDA driver, or why there is none.
struct FoundDriver {
  const gpu::Driver* driver = nullptr;
  std::string whyNot;
};

/// The parts, printed. The exit code: 0 where a network can be used. Loads plugins; needs no GPU.
int printNetworks();

/// The interfaces that `Socket` sees. `sysfs`: /sys/class/net.
std::string interfacesText(const Params& params, const std::string& sysfs);

/// The NICs with verbs that `IB` sees, with their ports and GIDs. `sysfs`: /sys/class/infiniband.
std::string verbsText(const Params& params, const std::string& sysfs);

/// Whether the devices of `network` (null: there is none) reach the memory of GPUs. `root`: where /sys lies, "" but in
/// tests.
std::string gpuDirectText(const Params& params, const FoundDriver& found, const comm::CommNetwork* network,
                          const std::string& root);

/// "NCCL_IB_HCA=^mlx5", or "NCCL_IB_HCA is not set".
std::string settingText(const std::string& name, const std::string& value);

/// Of what has a folder in sysfs: "NUMA node 1", or that it is not known.
std::string numaText(const std::string& pciPath);

/// "PCI /sys/devices/…", or that it is on no bus.
std::string pciText(const std::string& pciPath);

}  // namespace tutti::tool
