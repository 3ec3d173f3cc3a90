#include "topo/detect/sysfs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "base/fd.h"
#include "topo/detect/pci_facts.h"

namespace tutti::topo {
namespace {

namespace files = std::filesystem;

constexpr const char* kFunctions = "/sys/bus/pci/devices";

/// The first page of a file, without white space at its end; empty if it cannot be read. More is not needed, and all of
/// cpuinfo costs milliseconds on a large machine.
std::string readText(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {};
  char text[4096];
  const ssize_t size = ::read(file.get(), text, sizeof(text));
  if (size <= 0) return {};
  std::string result(text, static_cast<std::size_t>(size));
  result.erase(result.find_last_not_of(" \n\t") + 1);
  return result;
}

/// A number in C's notation at the start of the text.
long readNumber(const std::string& path, long otherwise) {
  const std::string text = readText(path);
  return text.empty() ? otherwise : std::strtol(text.c_str(), nullptr, 0);
}

std::vector<std::string> namesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (files::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The value of "key : value" in cpuinfo, empty if there is none.
std::string cpuinfoField(std::string_view text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const std::size_t colon = line.find(':');
    if (colon == line.npos || line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1) != key) continue;
    const std::size_t value = line.find_first_not_of(' ', colon + 1);
    return value == line.npos ? std::string() : std::string(line.substr(value));
  }
  return {};
}

constexpr const char* compiledArch() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "arm64";
#elif defined(__powerpc64__)
  return "ppc64";
#else
  return "";
#endif
}

/// Kernels for few CPUs write "3" for "00000003", those for many put words of zeros in front.
std::string wholeWords(std::string affinity) {
  const std::size_t first = std::min(affinity.find(','), affinity.size());
  if (first > 0 && first < 8) affinity.insert(0, 8 - first, '0');
  while (affinity.rfind("00000000,", 0) == 0) affinity.erase(0, 9);
  return affinity;
}

/// With a point, whatever the process' locale writes; 0: no number.
double rateOf(const std::string& speed) {
  double rate = 0;
  std::from_chars(speed.data(), speed.data() + speed.size(), rate);
  return rate;
}

std::string folderOf(const std::string& root, const std::string& busId) {
  return std::string(root).append(kFunctions).append("/").append(busId).append("/");
}

std::string speedOf(const std::string& at) {
  std::string speed = readText(at + "max_link_speed");
  return rateOf(speed) > 0 ? speed : std::string();  // "Unknown speed" where the bus has none
}

int widthOf(const std::string& at) {
  const long width = readNumber(at + "max_link_width", 0);
  return width > 0 && width <= 32 ? static_cast<int>(width) : 0;  // 255: none
}

void takeLink(PciFacts& facts, const std::string& root, bool hasParent) {
  const std::string at = folderOf(root, facts.busId);
  facts.linkSpeed = speedOf(at);
  facts.linkWidth = widthOf(at);
  if (!hasParent) return;
  const std::string port = folderOf(root, facts.parent);
  const std::string speed = speedOf(port);
  const int width = widthOf(port);
  if (!speed.empty() && rateOf(speed) < rateOf(facts.linkSpeed)) facts.linkSpeed = speed;
  if (width > 0 && width < facts.linkWidth) facts.linkWidth = width;
}

/// Devices of a class that are PCI functions: links like eth0 -> ../../devices/pci0000:16/0000:16:01.0/net/eth0.
void takeDevices(const std::string& folder, std::vector<OsDeviceFacts>& devices) {
  for (const std::string& name : namesIn(folder)) {
    std::error_code error;
    const std::string place = files::read_symlink(std::string(folder).append("/").append(name), error).string();
    // What hangs at USB is not where the controller is.
    if (error || place.find("/pci") == place.npos || place.find("/usb") != place.npos) continue;
    if (std::string busId = lastBusId(place); !busId.empty()) devices.push_back({name, std::move(busId)});
  }
}

}  // namespace

ProcessorFacts readProcessor(const std::string& root) {
  const std::string text = readText(root + "/proc/cpuinfo");
  ProcessorFacts facts;
  facts.vendor = cpuinfoField(text, "vendor_id");
  if (!facts.vendor.empty()) {
    facts.arch = "x86_64";
    const std::string family = cpuinfoField(text, "cpu family");
    const std::string model = cpuinfoField(text, "model");
    if (!family.empty()) facts.family = std::atoi(family.c_str());
    if (!model.empty()) facts.model = std::atoi(model.c_str());
  } else if (!cpuinfoField(text, "CPU implementer").empty()) {
    facts.arch = "arm64";
  } else if (cpuinfoField(text, "cpu").rfind("POWER", 0) == 0) {
    facts.arch = "ppc64";
  } else if (root.empty()) {
    facts.arch = compiledArch();
  }
  return facts;
}

std::vector<NumaNodeFacts> readSysfsNodes(const std::string& root) {
  const std::string folder = root + "/sys/devices/system/node";
  std::vector<NumaNodeFacts> nodes;
  for (const std::string& name : namesIn(folder)) {
    if (name.rfind("node", 0) != 0 || name.find_first_not_of("0123456789", 4) != name.npos || name.size() == 4)
      continue;
    NumaNodeFacts node{std::atoi(name.c_str() + 4),
                       wholeWords(readText(std::string(folder).append("/").append(name).append("/cpumap")))};
    // Nodes of memory alone (of GPUs, of CXL) are no CPUs.
    if (node.affinity.find_first_not_of("0,") != node.affinity.npos) nodes.push_back(std::move(node));
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return nodes;
}

std::vector<PciFacts> listSysfsPci(const std::string& root) {
  std::vector<PciFacts> all;
  for (const std::string& name : namesIn(root + kFunctions)) {
    PciFacts facts;
    facts.busId = normalBusId(name);
    if (facts.busId != name) continue;
    std::error_code error;
    const files::path place = files::read_symlink(root + kFunctions + "/" + name, error);
    if (!error) facts.parent = normalBusId(place.parent_path().filename().string());
    facts.classCode = static_cast<std::uint32_t>(readNumber(folderOf(root, name) + "class", 0));
    all.push_back(std::move(facts));
  }
  return all;
}

void takeSysfsLinks(std::vector<PciFacts>& pci, const std::string& root) {
  std::unordered_set<std::string> known;
  for (const PciFacts& facts : pci) known.insert(facts.busId);
  for (PciFacts& facts : pci) takeLink(facts, root, known.count(facts.parent) != 0);
}

namespace {

/// Of functions, all that hwloc tells as well.
std::vector<PciFacts> readPci(const std::string& root) {
  std::vector<PciFacts> pci = pciOfUse(listSysfsPci(root));
  for (PciFacts& facts : pci) {
    const std::string at = folderOf(root, facts.busId);
    const auto id = [&](const char* name) { return static_cast<std::uint16_t>(readNumber(at + name, 0)); };
    facts.vendor = id("vendor");
    facts.device = id("device");
    facts.subsystemVendor = id("subsystem_vendor");
    facts.subsystemDevice = id("subsystem_device");
    facts.numa = static_cast<int>(readNumber(at + "numa_node", -1));
  }
  takeSysfsLinks(pci, root);
  return pci;
}

std::vector<OsDeviceFacts> readDevices(const std::string& root) {
  std::vector<OsDeviceFacts> devices;
  for (const char* kind : {"/sys/class/net", "/sys/class/infiniband"}) takeDevices(root + kind, devices);
  std::sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return devices;
}

}  // namespace

HostFacts readSysfs(const std::string& root) {
  HostFacts facts;
  facts.processor = readProcessor(root);
  facts.numaNodes = readSysfsNodes(root);
  facts.pci = readPci(root);
  facts.devices = readDevices(root);
  return facts;
}

}  // namespace tutti::topo
