// What a machine (or a few hosts joined by NVLink) consists of: nodes, and directed links with their bandwidths.
//
//   Gpu -- Device == NVLink ==> NvSwitch            A Gpu is a rank's view of a Device: several ranks may share one.
//             \ PCI                                 All NVSwitches are one node, also across hosts.
//            Switch -- PCI -- Cpu == SYS == Cpu     NICs hang under switches or CPUs; a Net is a port, a device
//               \ PCI                               of a network plugin.
//               Nic -- Net
//
// A value, constant after it is built (machine_build.h); everything else about a machine is computed from it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace tutti::topo {

enum class NodeKind : std::uint8_t { Cpu, Switch, Device, Gpu, NvSwitch, Nic, Net };
inline constexpr int kNodeKinds = 7;

/// Local: Gpu-Device, virtual NIC-Cpu, peer-linked PCI switches. Net: Nic-Net.
enum class LinkKind : std::uint8_t { Local, NvLink, C2c, Pci, Sys, Net };

/// Decides the bandwidth between CPUs and some costs of PCI traffic.
enum class CpuKind : std::uint8_t {
  IntelBroadwell,
  IntelSkylake,
  IntelSapphireRapids,
  IntelEmeraldRapids,
  Amd,
  Zhaoxin,
  ZhaoxinYongfeng,
  OtherX86,
  Arm,
  Power,
};

struct CpuFacts {
  CpuKind kind = CpuKind::OtherX86;
  int numa = 0;
  std::string affinity;  ///< comma separated 32-bit hex words, most significant first; empty: unknown
};

struct SwitchFacts {
  std::uint64_t deviceId = 0;  ///< vendor, device, subsystem vendor, subsystem device: 16 bits each
};

struct DeviceFacts {
  int dev = -1;        ///< NVML index
  int sm = 0;          ///< compute capability x 10
  int partition = -1;  ///< of a partitioned GPU, -1: whole
  bool gdr = false;    ///< GPUDirect RDMA
};

struct GpuFacts {
  int rank = -1;
  int dev = -1;     ///< NVML index of its device
  int device = -1;  ///< its Device's node
  int sm = 0;       ///< its Device's
  bool gdr = false;
};

struct NvSwitchFacts {};

struct NicFacts {};

struct NetFacts {
  std::string name;
  int dev = -1;        ///< index in the network plugin
  float speed = 1.25;  ///< GB/s
  int port = 0;
  std::uint64_t guid = 0;  ///< of the adapter: ports with equal guid and port share bandwidth
  float latency = 0;       ///< microseconds
  int maxConnections = 64;
  bool gdr = false;
  bool collective = false;  ///< CollNet
  int rail = -1;            ///< -1: undefined
  int plane = -1;
};

using NodeFacts = std::variant<CpuFacts, SwitchFacts, DeviceFacts, GpuFacts, NvSwitchFacts, NicFacts, NetFacts>;

struct Node {
  int system = 0;        ///< index of the host in the fused machine
  std::uint64_t id = 0;  ///< local to its system: bus id (Gpu: + index on the device << 40), NUMA number, net's dev
  NodeFacts facts;
  std::vector<int> links;  ///< outgoing, by decreasing bandwidth; a switch's uplink last

  NodeKind kind() const { return static_cast<NodeKind>(facts.index()); }
};

/// One direction. GB/s.
struct Link {
  int from = -1;
  int to = -1;
  LinkKind kind = LinkKind::Local;
  float bandwidth = 0;
  int reverse = -1;  ///< the link back, -1: none
};

/// Nodes and links are numbered; numbers are stable for the life of the value. Thread-safe once built.
class Machine {
 public:
  int addNode(int system, std::uint64_t id, NodeFacts facts);
  /// Adds bandwidth to the link of this kind between the two, or makes it; both directions unless `oneWay`.
  void connect(int from, int to, LinkKind kind, float bandwidth, bool oneWay = false);
  /// Brings every node's links in their order. To be called once, at the end of building.
  void sortLinks();

  const Node& node(int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  const Link& link(int link) const { return links_[static_cast<std::size_t>(link)]; }
  int nodeCount() const { return static_cast<int>(nodes_.size()); }
  int linkCount() const { return static_cast<int>(links_.size()); }
  int systems() const { return systems_; }
  /// Nodes of a kind in the order they were added: for GPUs the "PCI order".
  std::span<const int> nodes(NodeKind kind) const { return byKind_[static_cast<std::size_t>(kind)]; }
  template <typename Facts>
  const Facts& facts(int n) const {
    return std::get<Facts>(node(n).facts);
  }
  /// The first CPU's: what CPU rules go by.
  CpuKind cpuKind() const;
  /// The link of this kind from one node to another, -1: none.
  int findLink(int from, int to, LinkKind kind) const;

 private:
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<int> byKind_[kNodeKinds];
  int systems_ = 1;
};

/// "GPU/0-1b000", "NET/0-2", "NVS/0-0": kind, system, id, as NCCL's graph lines name nodes.
std::string nodeName(const Machine& machine, int node);

}  // namespace tutti::topo
