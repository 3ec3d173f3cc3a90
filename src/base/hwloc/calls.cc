#include "base/hwloc/calls.h"

#include <fmt/format.h>

#include <utility>

#include "base/never_destroyed.h"
#include "base/settings/params.h"

namespace tutti {
namespace {

/// The name of the first function that is missing, null: none is.
const char* fill(HwlocCalls& calls, const DlLibrary& library) {
  const std::pair<const char*, void*> table[] = {
      {"hwloc_get_api_version", &calls.getApiVersion},
      {"hwloc_topology_init", &calls.topologyInit},
      {"hwloc_topology_destroy", &calls.topologyDestroy},
      {"hwloc_topology_load", &calls.topologyLoad},
      {"hwloc_topology_abi_check", &calls.topologyAbiCheck},
      {"hwloc_topology_set_components", &calls.topologySetComponents},
      {"hwloc_topology_set_flags", &calls.topologySetFlags},
      {"hwloc_topology_set_type_filter", &calls.topologySetTypeFilter},
      {"hwloc_topology_set_io_types_filter", &calls.topologySetIoTypesFilter},
      {"hwloc_topology_set_cache_types_filter", &calls.topologySetCacheTypesFilter},
      {"hwloc_topology_set_xmlbuffer", &calls.topologySetXmlbuffer},
      {"hwloc_topology_is_thissystem", &calls.topologyIsThissystem},
      {"hwloc_topology_get_support", &calls.topologyGetSupport},
      {"hwloc_topology_get_complete_cpuset", &calls.topologyGetCompleteCpuset},
      {"hwloc_get_obj_by_depth", &calls.getObjByDepth},
      {"hwloc_bitmap_alloc", &calls.bitmapAlloc},
      {"hwloc_bitmap_free", &calls.bitmapFree},
      {"hwloc_bitmap_set", &calls.bitmapSet},
      {"hwloc_bitmap_isset", &calls.bitmapIsset},
      {"hwloc_bitmap_last", &calls.bitmapLast},
      {"hwloc_set_cpubind", &calls.setCpubind},
      {"hwloc_set_area_membind", &calls.setAreaMembind},
  };
  static_assert(sizeof(table) / sizeof(table[0]) * sizeof(void*) == sizeof(HwlocCalls));
  for (const auto& [name, slot] : table) {
    void* const address = library.symbol(name);
    if (address == nullptr) return name;
    *static_cast<void**>(slot) = address;
  }
  return nullptr;
}

}  // namespace

Hwloc Hwloc::open(const std::string& library) {
  Hwloc hwloc;
  DlLibrary found = DlLibrary::open(library, &hwloc.text_);
  if (!found.valid()) return hwloc;
  const std::string path = found.path();
  const char* const missing = fill(hwloc.calls_, found);
  const unsigned version = missing == nullptr ? hwloc.calls_.getApiVersion() : 0;
  hwloc.found_ = version >> 16 == HWLOC_API_VERSION >> 16;
  if (missing != nullptr) {
    hwloc.text_ = fmt::format("{} has no {}", path, missing);
  } else if (!hwloc.found_) {
    hwloc.text_ = fmt::format("{} is of version {}, not 2", path, version >> 16);
  } else {
    hwloc.text_ = fmt::format("hwloc {}.{} ({})", version >> 16, version >> 8 & 0xff, path);
    found.leak();
  }
  return hwloc;
}

const Hwloc& Hwloc::instance() {
  static NeverDestroyed<Hwloc> system([] {
    if (Params::process().topology.hwloc) return open();
    Hwloc none;
    none.text_ = "TUTTI_HWLOC=0";
    return none;
  }());
  return system.get();
}

}  // namespace tutti
