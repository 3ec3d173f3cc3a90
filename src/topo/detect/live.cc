#include "topo/detect/live.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/environment.h"
#include "base/hwloc/calls.h"
#include "base/log.h"
#include "base/never_destroyed.h"
#include "gpu/nvml.h"
#include "topo/detect/hwloc.h"
#include "topo/detect/sysfs.h"
#include "topo/xml/topology_xml.h"

namespace tutti::topo {
namespace {

NvLinkEnd endOf(gpu::NvmlRemote remote) {
  switch (remote) {
    case gpu::NvmlRemote::Gpu:
      return NvLinkEnd::Gpu;
    case gpu::NvmlRemote::Npu:
      return NvLinkEnd::Cpu;
    case gpu::NvmlRemote::Switch:
      return NvLinkEnd::Switch;
    case gpu::NvmlRemote::Unknown:
      break;
  }
  return NvLinkEnd::Unknown;
}

GpuSourceFacts factsOf(const gpu::NvmlGpu& gpu) {
  GpuSourceFacts facts;
  facts.busId = normalBusId(gpu.busId);
  facts.index = gpu.index;
  facts.sm = gpu.computeCapability;
  facts.mig = gpu.mig;
  facts.pcieGeneration = gpu.pcieGeneration;
  facts.pcieWidth = gpu.pcieWidth;
  for (const gpu::NvmlLink& link : gpu.links) facts.nvlinks.push_back({endOf(link.remote), link.busId});
  facts.c2cLinks = gpu.c2cLinks;
  facts.c2cBandwidth = gpu.c2cBandwidth;
  return facts;
}

std::optional<int> attributeOf(const gpu::Driver& driver, CUdevice_attribute attribute, CUdevice device) {
  int value = 0;
  if (driver.cuDeviceGetAttribute(&value, attribute, device) != CUDA_SUCCESS) return std::nullopt;
  return value;
}

/// What the driver knows of its device number `ordinal`; a call that fails leaves its fact unknown.
std::optional<GpuSourceFacts> askDriver(const gpu::Driver& driver, int ordinal) {
  CUdevice device = 0;
  char busId[64] = {};
  CUresult result = driver.cuDeviceGet(&device, ordinal);
  if (result == CUDA_SUCCESS) result = driver.cuDeviceGetPCIBusId(busId, sizeof(busId) - 1, device);
  if (result != CUDA_SUCCESS) {
    info(kGraph, "CUDA device {} has no bus id ({}): it is left out of the topology", ordinal,
         gpu::describeCu(driver, result));
    return std::nullopt;
  }
  GpuSourceFacts facts;
  facts.busId = normalBusId(busId);
  if (facts.busId.empty()) facts.busId = busId;
  const auto major = attributeOf(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  const auto minor = attributeOf(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  facts.sm = major.value_or(0) * 10 + minor.value_or(0);
  const auto gdr = attributeOf(driver, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, device);
  if (gdr) facts.gdr = *gdr != 0;
  return facts;
}

/// Adds what the driver says to what NVML said. The driver shows only the devices of CUDA_VISIBLE_DEVICES; others get
/// GPUDirect from one of their kind. Several CUDA devices on one function (instances of a divided GPU) are one GPU.
void addDriver(const gpu::Driver& driver, std::vector<GpuSourceFacts>& gpus) {
  int count = 0;
  if (driver.cuDeviceGetCount(&count) != CUDA_SUCCESS) return;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const std::optional<GpuSourceFacts> seen = askDriver(driver, ordinal);
    if (!seen) continue;
    const auto known =
        std::find_if(gpus.begin(), gpus.end(), [&](const auto& gpu) { return gpu.busId == seen->busId; });
    if (known == gpus.end()) {
      gpus.push_back(*seen);
    } else {
      if (seen->sm > 0) known->sm = seen->sm;
      known->gdr = seen->gdr;
    }
  }
  for (GpuSourceFacts& gpu : gpus) {
    if (gpu.gdr) continue;
    const auto like = std::find_if(gpus.begin(), gpus.end(),
                                   [&](const auto& other) { return other.gdr.has_value() && other.sm == gpu.sm; });
    if (like != gpus.end()) gpu.gdr = like->gdr;
  }
}

/// Asked once for the life of the process: a thousand calls on a large machine, for what does not change while it is
/// used.
const gpu::NvmlMachine& nvmlMachine() {
  static NeverDestroyed<gpu::NvmlMachine> machine(gpu::Nvml::instance().readMachine());
  return machine.get();
}

void gatherGpus(const gpu::Driver* driver, DetectInput& input) {
  const gpu::NvmlMachine& machine = nvmlMachine();
  for (const std::string& sentence : machine.unknown) info(kGraph, "Topology detection: {}", sentence);
  for (const gpu::NvmlGpu& gpu : machine.gpus) {
    if (gpu.mig) info(kGraph, "GPU {} is divided into instances (MIG): its NVLinks are not used", gpu.index);
    input.gpus.push_back(factsOf(gpu));
  }
  for (const gpu::NvmlRefusal& refusal : machine.refusals) {
    const gpu::NvmlGpu& a = machine.gpus[static_cast<std::size_t>(refusal.a)];
    const gpu::NvmlGpu& b = machine.gpus[static_cast<std::size_t>(refusal.b)];
    info(kGraph, "The driver refuses peer access between GPU {} and GPU {}: {}", a.index, b.index, refusal.reason);
    const std::optional<std::uint64_t> one = parseBusId(a.busId);
    const std::optional<std::uint64_t> other = parseBusId(b.busId);
    if (!one || !other) continue;
    input.peersRefused.push_back({*one, *other, refusal.reason});
    input.peersRefused.push_back({*other, *one, refusal.reason});
  }
  input.gpusComplete = machine.complete && !machine.gpus.empty();
  if (driver != nullptr) addDriver(*driver, input.gpus);
}

/// The file asked for, or the one a VM's provider left, which knows nothing of simulated devices. One that is missing
/// is no error.
Status gatherFile(const LiveRequest& request, DetectInput& input) {
  const std::string path =
      request.topologyFile.empty() ? request.systemRoot + kVirtualTopologyFile : request.topologyFile;
  if (request.topologyFile.empty() && request.driver != nullptr && request.driver->softGpu) return {};
  if (::access(path.c_str(), F_OK) != 0) {
    if (!request.topologyFile.empty()) {
      info(kGraph | kEnv, "NCCL_TOPO_FILE={}: {}; the topology is detected without it", path, errnoText(errno));
    }
    return {};
  }
  ASSIGN(input.given, readTopologyFile(path, request.topologyFile.empty() ? "" : "NCCL_TOPO_FILE"));
  input.givenOrigin = path;
  info(kGraph | kEnv, "Topology file {} is used", path);
  return {};
}

/// A file that stands in for what the system hides; empty: none.
std::string hwlocFile() {
  return ProcessEnv().get("HWLOC_XMLFILE").value_or("");
}

/// What hwloc says of this machine, or why it does not; asked once for the life of the process, as NVML is.
struct HwlocAnswer {
  std::string why;
  std::optional<HostFacts> facts = readHwloc({}, why);
};

std::optional<HostFacts> liveByHwloc(std::string& why) {
  static NeverDestroyed<HwlocAnswer> answer;
  why = answer.get().why;
  return answer.get().facts;
}

HostFacts readHost(const LiveRequest& request) {
  const std::string& root = request.systemRoot;
  std::string why;
  if (!request.hwloc) {
    why = "hwloc is not asked for";
  } else if (!hwlocFile().empty()) {
    // hwloc would take the file for all of the machine, and launchers write files without PCI functions.
    why = "HWLOC_XMLFILE is set, which only stands in for what is hidden";
  } else if (auto facts = root.empty() ? liveByHwloc(why) : readHwloc(root, why)) {
    info(kGraph, "The machine is read by {}", Hwloc::instance().text());
    return std::move(*facts);
  }
  info(kGraph, "The machine is read from {}/sys: {}", root, why);
  return readSysfs(root);
}

/// What the system hides (in a container, say), out of the file that hwloc would be given in its stead.
void completeByFile(HostFacts& host) {
  const std::string path = hwlocFile();
  if (path.empty() || (!host.pci.empty() && !host.numaNodes.empty())) return;
  if (::access(path.c_str(), F_OK) != 0) {
    info(kGraph, "HWLOC_XMLFILE={}: {}; what /sys does not show stays unknown", path, errnoText(errno));
    return;
  }
  const Result<std::string> text = readXmlText(path, XmlLimits().bytes, "HWLOC_XMLFILE");
  if (!text.ok()) return;  // that has been said
  std::string why;
  std::optional<HostFacts> recorded = readHwlocXml(text.value(), why);
  if (!recorded) {
    warn("HWLOC_XMLFILE={}: {}; what /sys does not show stays unknown", path, why);
    return;
  }
  info(kGraph, "HWLOC_XMLFILE={} stands in for what /sys does not show", path);
  if (host.pci.empty()) {
    host.pci = std::move(recorded->pci);
    host.devices = std::move(recorded->devices);
  }
  if (host.numaNodes.empty()) host.numaNodes = std::move(recorded->numaNodes);
  if (host.processor.arch.empty()) host.processor = std::move(recorded->processor);
}

void saySystem(const HostFacts& host, const std::string& root) {
  if (host.processor.arch.empty()) info(kGraph, "{}/proc/cpuinfo does not tell the CPU's kind: it is unknown", root);
  if (host.numaNodes.empty()) info(kGraph, "{}/sys shows no NUMA nodes: all is taken to hang at one CPU", root);
  if (host.pci.empty()) info(kGraph, "{}/sys shows no PCI functions: GPUs and NICs are taken to hang at one CPU", root);
}

/// The software GPU's machine, as SOFTGPU_TOPO says; empty without it.
Result<std::optional<XmlElement>> readSoftTopology(const gpu::Driver& driver) {
  const char* text = nullptr;
  const char* path = nullptr;
  std::size_t bytes = 0;
  if (driver.softgpuTopology == nullptr || driver.softgpuTopology(&text, &bytes, &path) != CUDA_SUCCESS) {
    return std::optional<XmlElement>();
  }
  ASSIGN(XmlElement xml, parseTopology(std::string_view(text, bytes), path));
  return std::optional<XmlElement>(std::move(xml));
}

}  // namespace

Result<DetectInput> gatherFacts(const LiveRequest& request) {
  DetectInput input;
  input.nets = request.nets;
  TRY(gatherFile(request, input));
  if (request.driver != nullptr && request.driver->softGpu) {
    // The host's own hardware says nothing about simulated devices.
    if (input.given) return input;
    ASSIGN(input.given, readSoftTopology(*request.driver));
    if (input.given && input.given->origin != nullptr) input.givenOrigin = *input.given->origin;
    return input;
  }
  input.host = readHost(request);
  completeByFile(input.host);
  saySystem(input.host, request.systemRoot);
  gatherGpus(request.driver, input);
  return input;
}

Result<std::optional<LiveTopology>> detectLive(const LiveRequest& request) {
  ASSIGN(const DetectInput input, gatherFacts(request));
  if (request.driver != nullptr && request.driver->softGpu && !input.given) {
    info(kGraph, "The software GPU has no topology file (SOFTGPU_TOPO): nothing is known about the machine");
    return std::optional<LiveTopology>();
  }
  ASSIGN(XmlElement xml, detectTopology(input));
  return std::optional<LiveTopology>(LiveTopology{std::move(xml), input.peersRefused});
}

}  // namespace tutti::topo
