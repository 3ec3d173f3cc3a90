#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/log.h"
#include "base/settings/params.h"
#include "comm/agreement/own_machine.h"
#include "comm/network/gpu_direct.h"
#include "comm/network/network.h"
#include "comm/network/nics.h"
#include "comm/settings/network_settings.h"
#include "comm/settings/topology_settings.h"
#include "gpu/context.h"
#include "gpu/dma_buf.h"
#include "networks.h"
#include "plugin/network/net.h"
#include "topo/detect/detect.h"
#include "topo/machine/paths_adjust.h"
#include "topo/search/graph.h"
#include "topo/search/topology.h"
#include "topo/xml/values.h"
#include "transport/net/ib/nic/devices.h"

namespace tutti::tool {

namespace {

/// What the driver says of one GPU.
struct Gpu {
  int ordinal = 0;
  gpu::CudaDeviceFacts facts;
  bool reached = false;  ///< by NICs
  bool dmaBufs = false;  ///< its memory can be given away as such
};

/// All that decides, and is the same for all pairs of a GPU and a NIC.
struct Ground {
  const comm::CommNetwork& network;
  comm::GpuDirectSettings settings;
  topo::PathSettings paths;
  std::optional<topo::Topology> topology;  ///< empty: nothing is known of the machine
  std::string unknown;                     ///< then: why
  bool softGpu = false;
};

Result<std::vector<Gpu>> askDriver(const gpu::Driver& driver) {
  ASSIGN(const int count, gpu::deviceCount(driver));
  std::vector<Gpu> gpus;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    Gpu gpu{.ordinal = ordinal};
    ASSIGN(gpu.facts, gpu::readDeviceFacts(driver, ordinal));
    CUdevice device = 0;
    TRY(gpu::checkCu(driver, driver.cuDeviceGet(&device, ordinal), "cuDeviceGet", ordinal));
    gpu.reached = gpu::reachedByNics(driver, device);
    gpu.dmaBufs = gpu::exportsDmaBufs(driver, device);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

Result<std::optional<topo::Topology>> lookAround(const gpu::Driver& driver, const comm::TopologySettings& settings,
                                                 const comm::CommNetwork& network, bool dmaBufs) {
  const auto nets = comm::factsOf(network.devices(), network.usable(), network.collDevices(), dmaBufs);
  ASSIGN(comm::OwnMachine machine, comm::readMachine(driver, settings, nets));
  if (!machine.elements) return std::optional<topo::Topology>();
  topo::PathSettings paths = settings.paths;
  paths.p2p.refused = machine.peersRefused;
  ASSIGN(topo::Topology topology, topo::buildTopology(*machine.elements, {.interNode = true}, paths));
  return std::optional<topo::Topology>(std::move(topology));
}

/// The node of a GPU in the machine; -1: it is not there.
int nodeOf(const topo::Machine& machine, const Gpu& gpu) {
  const auto busId = topo::parseBusId(gpu.facts.busIdText);
  for (const int node : machine.nodes(topo::NodeKind::Gpu)) {
    const int device = machine.facts<topo::GpuFacts>(node).device;
    if (busId && machine.node(device).id == *busId) return node;
  }
  return -1;
}

/// The node of the network's device; -1: it is not there.
int nodeOf(const topo::Machine& machine, int device) {
  for (const int node : machine.nodes(topo::NodeKind::Net)) {
    if (machine.facts<topo::NetFacts>(node).dev == device) return node;
  }
  return -1;
}

/// One GPU and one device of the network.
class Pair {
 public:
  Pair(const Ground& ground, const Gpu& gpu, int device) : ground_(ground), gpu_(gpu), device_(device) {
    if (!ground.topology) return;
    const topo::Machine& machine = ground.topology->machine;
    gpuNode_ = nodeOf(machine, gpu);
    netNode_ = nodeOf(machine, device);
    if (gpuNode_ < 0 || netNode_ < 0) return;
    access_ = comm::accessTo(comm::nicsOf(*ground.topology, topo::Graph{}, gpuNode_, ground.paths), device);
  }

  std::string text() const {
    const std::string far =
        access_ ? fmt::format(" ({})", topo::pathTypeName(distance())) : std::string(" (distance not known)");
    return fmt::format("    device {}, {}{}: receives {}, sends {}\n", device_, properties().name, far,
                       directionText(device::Direction::Recv), directionText(device::Direction::Send));
  }

 private:
  const plugin::NetProperties& properties() const {
    return ground_.network.devices()[static_cast<std::size_t>(device_)];
  }
  bool dmaBufs() const { return gpu_.dmaBufs && ground_.settings.dmaBuf && ground_.network.dmaBufs(); }
  topo::PathType distance() const { return ground_.topology->paths.of(netNode_, gpuNode_).type; }

  std::string directionText(device::Direction direction) const {
    const net::SlotPlace place = comm::slotPlaceFor({.device = properties(),
                                                     .access = access_,
                                                     .direction = direction,
                                                     .computeCapability = gpu_.facts.computeCapability,
                                                     .softGpu = ground_.softGpu,
                                                     .dmaBufs = dmaBufs()},
                                                    ground_.settings);
    if (!place.onDevice) return fmt::format("no: {}", whyNot(direction));
    return fmt::format("yes, {}{}", place.dmaBuf ? "as a dma-buf" : "by its address", place.flushes ? ", flushed" : "");
  }

  std::string whyNot(device::Direction direction) const {
    if (!comm::takesGpuMemory(properties(), dmaBufs())) return "it takes no GPU memory";
    if (access_) {
      const topo::GdrPair pair{gpuNode_, netNode_, direction == device::Direction::Send, distance()};
      const topo::Topology& topology = *ground_.topology;
      return std::string(topo::gdrVerdictText(topo::judgeGdr(topology.machine, topology.paths, ground_.paths, pair)));
    }
    if (ground_.softGpu) return "NCCL_NET_GDR_LEVEL or NCCL_NET_GDR_READ forbids it";
    return "where GPU and NIC are is not known";
  }

  const Ground& ground_;
  const Gpu& gpu_;
  const int device_;
  int gpuNode_ = -1;
  int netNode_ = -1;
  std::optional<comm::NicAccess> access_;
};

std::string gpuText(const Ground& ground, const Gpu& gpu) {
  std::string text =
      fmt::format("  GPU {} ({}, {}): the driver says that NICs {} its memory; dma-bufs {}\n", gpu.ordinal,
                  gpu.facts.name, gpu.facts.busIdText, gpu.reached ? "reach" : "do not reach",
                  gpu.dmaBufs ? "are given" : "are not given (kernel and open driver modules are needed)");
  for (const int device : ground.network.usable()) text += Pair(ground, gpu, device).text();
  return text;
}

std::string peerMemoryText(const std::string& root) {
  const std::string sign = net::ib::peerMemorySign(root);
  if (!sign.empty()) return fmt::format("  nvidia-peermem: loaded ({})\n", sign);
  return "  nvidia-peermem: not loaded (modprobe nvidia_peermem, or a NIC and a GPU that both know dma-bufs)\n";
}

std::string pairsText(const Params& params, const gpu::Driver& driver, const comm::CommNetwork& network) {
  const Result<std::vector<Gpu>> gpus = askDriver(driver);
  if (!gpus.ok()) return fmt::format("  GPUs cannot be asked: {}\n", lastErrorText());
  Ground ground{.network = network,
                .settings = comm::gpuDirectSettings(params),
                .paths = comm::topologySettingsFrom(params).paths,
                .softGpu = driver.softGpu};
  auto topology = lookAround(driver, comm::topologySettingsFrom(params), network, network.dmaBufs());
  ground.unknown = topology.ok() ? "nothing is known of the machine" : lastErrorText();
  if (topology.ok()) ground.topology = std::move(topology).value();
  std::string text = params.topology.netGdrLevel.empty()
                         ? "  NCCL_NET_GDR_LEVEL is not set: up to P2C\n"
                         : fmt::format("  NCCL_NET_GDR_LEVEL={}\n", params.topology.netGdrLevel);
  if (!ground.topology) text += fmt::format("  Where GPUs and NICs are: {}\n", ground.unknown);
  for (const Gpu& gpu : gpus.value()) text += gpuText(ground, gpu);
  return text;
}

}  // namespace

std::string gpuDirectText(const Params& params, const FoundDriver& found, const comm::CommNetwork* network,
                          const std::string& root) {
  std::string text = "GPUDirect RDMA: whether NICs write to GPU memory (receives) and read it (sends) themselves\n";
  text += peerMemoryText(root);
  if (!params.topology.dmaBufEnable) text += "  dma-bufs: NCCL_DMABUF_ENABLE=0 forbids them\n";
  if (network == nullptr) return text + "  There is no network to ask\n";
  if (found.driver == nullptr) return text + fmt::format("  GPUs cannot be asked: {}\n", found.whyNot);
  return text + pairsText(params, *found.driver, *network);
}

}  // namespace tutti::tool
