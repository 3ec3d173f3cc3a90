// libhwloc, which reads machines and binds threads and memory: its functions as a table. It is found at run time and
// may be missing; only its header is needed to build. What it does not do in this process: topology.h.
#pragma once

#include <hwloc.h>

#include <string>

#include "base/dl.h"

namespace tutti {

/// The functions that are used, by their names without "hwloc_". All of them are there, or there is no table.
struct HwlocCalls {
  decltype(&::hwloc_get_api_version) getApiVersion = nullptr;
  decltype(&::hwloc_topology_init) topologyInit = nullptr;
  decltype(&::hwloc_topology_destroy) topologyDestroy = nullptr;
  decltype(&::hwloc_topology_load) topologyLoad = nullptr;
  decltype(&::hwloc_topology_abi_check) topologyAbiCheck = nullptr;
  decltype(&::hwloc_topology_set_components) topologySetComponents = nullptr;
  decltype(&::hwloc_topology_set_flags) topologySetFlags = nullptr;
  decltype(&::hwloc_topology_set_type_filter) topologySetTypeFilter = nullptr;
  decltype(&::hwloc_topology_set_io_types_filter) topologySetIoTypesFilter = nullptr;
  decltype(&::hwloc_topology_set_cache_types_filter) topologySetCacheTypesFilter = nullptr;
  decltype(&::hwloc_topology_set_xmlbuffer) topologySetXmlbuffer = nullptr;
  decltype(&::hwloc_topology_is_thissystem) topologyIsThissystem = nullptr;
  decltype(&::hwloc_topology_get_support) topologyGetSupport = nullptr;
  decltype(&::hwloc_topology_get_complete_cpuset) topologyGetCompleteCpuset = nullptr;
  decltype(&::hwloc_get_obj_by_depth) getObjByDepth = nullptr;
  decltype(&::hwloc_bitmap_alloc) bitmapAlloc = nullptr;
  decltype(&::hwloc_bitmap_free) bitmapFree = nullptr;
  decltype(&::hwloc_bitmap_set) bitmapSet = nullptr;
  decltype(&::hwloc_bitmap_isset) bitmapIsset = nullptr;
  decltype(&::hwloc_bitmap_last) bitmapLast = nullptr;
  decltype(&::hwloc_set_cpubind) setCpubind = nullptr;
  decltype(&::hwloc_set_area_membind) setAreaMembind = nullptr;
};

/// One libhwloc, or the reason why there is none. Any thread.
class Hwloc {
 public:
  /// Opens a library of version 2. It is never unloaded.
  static Hwloc open(const std::string& library = "libhwloc.so.15");
  /// The system's own, opened at the first call, once for the life of the process; with TUTTI_HWLOC=0 none.
  static const Hwloc& instance();

  /// Null where there is none.
  const HwlocCalls* calls() const { return found_ ? &calls_ : nullptr; }
  /// "hwloc 2.9 (/usr/lib/libhwloc.so.15)", or why there is none: "libhwloc.so.15: cannot open shared object file".
  const std::string& text() const { return text_; }

 private:
  HwlocCalls calls_;
  bool found_ = false;
  std::string text_;
};

}  // namespace tutti
