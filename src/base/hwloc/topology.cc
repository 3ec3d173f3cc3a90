#include "base/hwloc/topology.h"

#include <fmt/format.h>
#include <locale.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "base/environment.h"
#include "base/hwloc/hidden_plugins.h"
#include "base/log.h"

namespace tutti {
namespace {

/// Components that are kept out, whether built in or plugins that the application has let in: vendors' libraries; x86,
/// which moves the calling thread to every processor in turn; pci, for Linux itself tells what is needed.
constexpr std::array<const char*, 8> kKeptOut = {"cuda", "nvml", "opencl", "gl", "rsmi", "levelzero", "x86", "pci"};

void choose(const HwlocCalls& calls, hwloc_topology_t topology, HwlocDetail detail) {
  for (const char* name : kKeptOut) {
    calls.topologySetComponents(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, name);
  }
  // Older libraries refuse all flags for the sake of one that they do not know; the first is the one that matters.
  constexpr unsigned long kNeeded = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;
  constexpr unsigned long kCheaper = HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
                                     HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
  if (calls.topologySetFlags(topology, kNeeded | kCheaper) != 0) calls.topologySetFlags(topology, kNeeded);
  calls.topologySetCacheTypesFilter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_CORE, HWLOC_OBJ_DIE, HWLOC_OBJ_MISC}) {
    calls.topologySetTypeFilter(topology, type, HWLOC_TYPE_FILTER_KEEP_NONE);
  }
  if (detail == HwlocDetail::Devices) calls.topologySetIoTypesFilter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
}

/// Whether hwloc can read the system's list of NUMA nodes, as "0-1,8": it ends the process over one that is empty or
/// not in order, which containers may show that put files of their own over /sys.
bool listsNodes(const std::string& root) {
  const std::string folder = root + "/sys/devices/system/node";
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return true;
  std::ifstream file(folder + "/online");
  if (!file) return std::filesystem::exists(folder + "/node0", error);
  std::string text;
  std::getline(file, text);
  long least = 0;
  for (const char* at = text.c_str();;) {
    char* end = nullptr;
    long last = std::strtol(at, &end, 10);
    if (end == at || last < least) return false;
    if (*end == '-') {
      at = end + 1;
      const long first = last;
      last = std::strtol(at, &end, 10);
      if (end == at || last < first) return false;
    }
    if (*end == '\0') return true;
    if (*end != ',') return false;
    least = last + 1;
    at = end + 1;
  }
}

/// Numbers with a point for this thread, whatever the application's locale writes: hwloc reads them as it says.
class PlainNumbers {
 public:
  PlainNumbers() : plain_(::newlocale(LC_ALL_MASK, "C", nullptr)) {
    if (plain_ != nullptr) before_ = ::uselocale(plain_);
  }
  PlainNumbers(const PlainNumbers&) = delete;
  ~PlainNumbers() {
    if (plain_ == nullptr) return;
    ::uselocale(before_);
    ::freelocale(plain_);
  }

 private:
  locale_t plain_;
  locale_t before_ = nullptr;
};

}  // namespace

std::optional<HwlocTopology> HwlocTopology::begin(HwlocDetail detail, std::string& why) {
  const Hwloc& hwloc = Hwloc::instance();
  if (hwloc.calls() == nullptr) {
    why = hwloc.text();
    return std::nullopt;
  }
  hwloc_topology_t raw = nullptr;
  {
    const HiddenPlugins hidden;
    if (hwloc.calls()->topologyInit(&raw) != 0) raw = nullptr;
  }
  if (raw == nullptr) {
    why = fmt::format("{} cannot begin: {}", hwloc.text(), errnoText(errno));
    return std::nullopt;
  }
  HwlocTopology topology;
  topology.topology_ = Handle<HwlocTopologyTraits>(raw);
  choose(*hwloc.calls(), raw, detail);
  return topology;
}

bool HwlocTopology::load(std::string& why) {
  const bool read = calls().topologyLoad(get()) == 0;
  const int error = errno;
  const bool known = read && calls().topologyAbiCheck(get()) == 0 && root() != nullptr;
  if (!known) {
    why = fmt::format("{} failed: {}", Hwloc::instance().text(), read ? "another layout" : errnoText(error));
  }
  return known;
}

std::optional<HwlocTopology> HwlocTopology::read(HwlocDetail detail, std::string& why) {
  if (const std::string root = ProcessEnv().get("HWLOC_FSROOT").value_or(""); !listsNodes(root)) {
    why = root + "/sys/devices/system/node/online is no list of NUMA nodes, over which hwloc would end the process";
    return std::nullopt;
  }
  std::optional<HwlocTopology> topology = begin(detail, why);
  return topology && topology->load(why) ? std::move(topology) : std::nullopt;
}

std::optional<HwlocTopology> HwlocTopology::readXml(const std::string& text, std::string& why) {
  std::optional<HwlocTopology> topology = begin(HwlocDetail::Devices, why);
  if (!topology) return std::nullopt;
  const PlainNumbers plain;
  // The size counts the null at the end.
  const int bytes = static_cast<int>(text.size()) + 1;
  if (topology->calls().topologySetXmlbuffer(topology->get(), text.c_str(), bytes) != 0) {
    why = fmt::format("{} takes no such file: {}", Hwloc::instance().text(), errnoText(errno));
    return std::nullopt;
  }
  return topology->load(why) ? std::move(topology) : std::nullopt;
}

}  // namespace tutti
