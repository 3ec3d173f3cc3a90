// A topology of hwloc: a machine as a tree of objects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/handle.h"
#include "base/hwloc/calls.h"

namespace tutti {

struct HwlocTopologyTraits {
  using Type = hwloc_topology_t;
  static Type invalid() { return nullptr; }
  static void close(Type topology) { Hwloc::instance().calls()->topologyDestroy(topology); }
};

/// How much is looked at.
enum class HwlocDetail : std::uint8_t {
  Processors,  ///< processors and NUMA nodes: a millisecond, on machines of hundreds of processors ten
  Devices,     ///< also PCI functions, and the devices that they are: some tens of milliseconds
};

/// Owns a topology that was read. It brings nothing of CUDA, NVML, OpenCL or GL into the process, moves no thread, and
/// shows processors also that the process may not use. As long as one lives hwloc opens no plugins for anybody, the
/// application included, so none should live long. Reading by any thread, also by several at once.
class HwlocTopology {
 public:
  /// The machine that this process runs on, or whatever else HWLOC_XMLFILE, HWLOC_FSROOT and the like name: see
  /// isThisMachine(). Empty where there is no hwloc or reading failed; `why` says so then.
  static std::optional<HwlocTopology> read(HwlocDetail detail, std::string& why);
  /// The machine that a text in hwloc's XML describes.
  static std::optional<HwlocTopology> readXml(const std::string& text, std::string& why);

  /// What it shows is this machine: threads and memory can be bound with it.
  bool isThisMachine() const { return calls().topologyIsThissystem(get()) == 1; }
  /// The root of the tree.
  hwloc_obj_t root() const { return calls().getObjByDepth(get(), 0, 0); }
  hwloc_topology_t get() const { return topology_.get(); }
  const HwlocCalls& calls() const { return *Hwloc::instance().calls(); }

 private:
  static std::optional<HwlocTopology> begin(HwlocDetail detail, std::string& why);
  bool load(std::string& why);

  Handle<HwlocTopologyTraits> topology_;
};

}  // namespace tutti
