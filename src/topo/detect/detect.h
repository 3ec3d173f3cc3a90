// What machine a process runs on: plain facts from the operating system, the driver, NVML and network plugins -> an
// element in the form of NCCL's topology file, which buildTopology() reads. Pure: recorded facts of another machine
// give that machine. Who gathers the facts of the live one: live.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topo/machine/peer_refusal.h"
#include "topo/xml/xml.h"

namespace tutti::topo {

/// The kind of the CPUs, as /proc/cpuinfo says it.
struct ProcessorFacts {
  std::string arch;    ///< "x86_64", "arm64", "ppc64"; empty: unknown
  std::string vendor;  ///< x86: "GenuineIntel", "AuthenticAMD", …
  int family = -1;     ///< -1: unknown
  int model = -1;
};

/// A NUMA node that has CPUs.
struct NumaNodeFacts {
  int id = 0;
  /// Its CPUs: comma separated words of 8 hex digits, most significant first, no more than it takes; empty: unknown.
  std::string affinity;
};

/// A PCI function or bridge. Bus ids are written "0000:1b:00.0", lower case.
struct PciFacts {
  std::string busId;
  std::string parent;           ///< bus id of the bridge above, empty: directly at the host bridge
  std::uint32_t classCode = 0;  ///< 24 bits: 0x060400 is a bridge
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint16_t subsystemVendor = 0;
  std::uint16_t subsystemDevice = 0;
  std::string linkSpeed;  ///< the most that device and slot can, "32.0 GT/s PCIe"; empty: unknown
  int linkWidth = 0;      ///< lanes, 0: unknown
  int numa = -1;          ///< -1: unknown
};

/// A network or verbs device of the operating system.
struct OsDeviceFacts {
  std::string name;   ///< "eth0", "mlx5_0"
  std::string busId;  ///< of the PCI function that it is

  bool operator==(const OsDeviceFacts&) const = default;
};

/// What the operating system shows. Sources, which say the same: hwloc.h and sysfs.h.
struct HostFacts {
  ProcessorFacts processor;
  std::vector<NumaNodeFacts> numaNodes;  ///< ascending; empty: unknown, taken as one
  std::vector<PciFacts> pci;             ///< empty: hidden
  std::vector<OsDeviceFacts> devices;    ///< by name
};

/// What the far end of an NVLink is.
enum class NvLinkEnd : std::uint8_t { Gpu, Switch, Cpu, Unknown };

/// One active NVLink of a GPU.
struct NvLinkFacts {
  NvLinkEnd end = NvLinkEnd::Unknown;
  std::string target;  ///< bus id of the far end, as the driver tells it; empty: hidden
};

/// One GPU, as driver and NVML see it.
struct GpuSourceFacts {
  std::string busId;
  int index = -1;           ///< NVML index; the number that nvidia-smi gives; -1: unknown
  int sm = 0;               ///< compute capability x 10
  std::optional<bool> gdr;  ///< GPUDirect RDMA; empty: the driver was not asked about this GPU
  bool mig = false;         ///< divided into instances: its NVLinks carry nothing between them
  int pcieGeneration = 0;   ///< the most that GPU and slot can, 0: unknown; used where /sys does not say
  int pcieWidth = 0;        ///< lanes
  std::vector<NvLinkFacts> nvlinks;
  int c2cLinks = 0;
  int c2cBandwidth = 0;  ///< MB/s of one link
};

/// One port of a network plugin.
struct NetDeviceFacts {
  std::string name;
  int dev = -1;         ///< the network's number for it; -1: its place in the list
  std::string pciPath;  ///< folder of its PCI function under /sys; without a bus id: that of the system's device `name`
  std::uint64_t guid = 0;
  int speed = 10000;  ///< Mb/s
  int port = 0;
  float latency = 0;  ///< microseconds
  int maxComms = 65536;
  bool gdr = false;   ///< can read and write GPU memory
  bool coll = false;  ///< can do collectives
  int rail = -1;      ///< -1: undefined
  int plane = -1;
};

/// All that is known about a machine. Every part may be empty.
struct DetectInput {
  HostFacts host;
  std::vector<GpuSourceFacts> gpus;
  bool gpusComplete = false;                        ///< the machine has no others: a given file's are left out
  std::optional<std::vector<NetDeviceFacts>> nets;  ///< empty: nobody was asked, a given file's stay
  std::optional<XmlElement> given;                  ///< a topology file: kept, completed by the facts
  std::string givenOrigin;                          ///< its path, for messages
  std::vector<PeerRefusal> peersRefused;  ///< for P2pStatus::refused (paths.h); no part of the topology file's form
};

/// The machine as the root element of a topology file: one <cpu> for each NUMA node with something below, PCI switches
/// by their upstream port, GPUs, NVLinks by target, NICs. `rank` is not given. What is hidden hangs under its NUMA
/// node, or under the first CPU. With `given`, elements and attributes of the file win, but a GPU's `dev`, which is
/// this machine's number. Order: CPUs by number, siblings by bus id, so that all ranks of a host get the same. Errors:
/// ncclInvalidUsage for a given file that is none, naming it.
Result<XmlElement> detectTopology(const DetectInput& input);

/// "0000:1b:00.0" from the forms drivers use ("00000000:1B:00.0", "1b:00.0"); empty if it is no bus id.
std::string normalBusId(std::string_view text);

/// The last part of a path that is a bus id, in its normal form; empty if there is none.
std::string lastBusId(std::string_view path);

}  // namespace tutti::topo
