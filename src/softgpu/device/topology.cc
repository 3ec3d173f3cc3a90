#include "softgpu/device/topology.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <pugixml.hpp>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/user_file.h"

namespace tutti::softgpu {
namespace {

constexpr std::size_t kMaxBytes = 16u << 20;
constexpr std::size_t kMaxDevicesOfFile = 1024;
constexpr int kMaxDepth = 64;  ///< of elements: pugixml removes them recursively

struct Found {
  pugi::xml_node gpu;
  DeviceFacts facts;
};

/// The place that a bus id names; false: it names none.
bool parsePlace(const char* text, DeviceFacts& facts) {
  unsigned function = 0;
  return std::sscanf(text, "%x:%x:%x.%x", &facts.domain, &facts.bus, &facts.slot, &function) == 4 && facts.bus < 256 &&
         facts.slot < 32;
}

struct DepthCheck : pugi::xml_tree_walker {
  bool for_each(pugi::xml_node&) override { return depth() < kMaxDepth; }
};

/// A host_hash as readers of topology files take it: hexadecimal, none is 0. False: it is no number.
bool parseHost(std::string_view text, std::uint64_t& hash) {
  hash = 0;
  if (text.empty()) return true;
  const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
  text = text.substr(first, text.find_last_not_of(' ') + 1 - first);
  if (text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X") text.remove_prefix(2);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  return error == std::errc() && end == text.data() + text.size();
}

/// Takes the hosts out that are not the one asked for. The complaint, empty if there is none.
std::string keepHost(pugi::xml_node system, int host) {
  std::vector<std::uint64_t> hosts;
  std::vector<std::pair<pugi::xml_node, std::size_t>> cpus;
  for (const pugi::xml_node& cpu : system.children("cpu")) {
    const std::string text = cpu.attribute("host_hash").as_string();
    std::uint64_t hash = 0;
    if (!parseHost(text, hash)) return "a <cpu> has host_hash=\"" + text + "\", which is no hexadecimal number";
    const auto known = std::find(hosts.begin(), hosts.end(), hash);
    cpus.emplace_back(cpu, static_cast<std::size_t>(known - hosts.begin()));
    if (known == hosts.end()) hosts.push_back(hash);
  }
  // A file of one host is every host's: hosts of the same kind share it.
  const std::size_t wanted = hosts.size() == 1 ? 0 : static_cast<std::size_t>(host);
  if (wanted >= hosts.size() && !hosts.empty()) {
    return "it has " + std::to_string(hosts.size()) + " hosts (by host_hash), and SOFTGPU_HOST asks for number " +
           std::to_string(host) + ", counted from 0";
  }
  for (const auto& [cpu, number] : cpus) {
    if (number != wanted) system.remove_child(cpu);
  }
  return {};
}

/// The GPUs below PCI functions, one for each function. The complaint, empty if there is none.
std::string findGpus(const pugi::xml_node& system, std::vector<Found>& gpus) {
  std::set<std::tuple<unsigned, unsigned, unsigned>> places;
  for (const auto& match : system.select_nodes("cpu//pci[gpu]")) {
    const pugi::xml_node pci = match.node();
    Found found{pci.child("gpu"), {}};
    const std::string busId = pci.attribute("busid").as_string();
    if (!parsePlace(busId.c_str(), found.facts)) return "a GPU's <pci> has busid=\"" + busId + "\", which is no bus id";
    if (!places.emplace(found.facts.domain, found.facts.bus, found.facts.slot).second) {
      return "two GPUs have the bus id " + busId;
    }
    found.facts.physical = found.gpu.attribute("dev").as_int(static_cast<int>(gpus.size()));
    found.facts.capability = found.gpu.attribute("sm").as_int(90);
    if (found.facts.capability < 10 || found.facts.capability > 990) {
      return "the GPU at " + busId + " has sm=\"" + found.gpu.attribute("sm").as_string() + "\"; 90 is 9.0";
    }
    gpus.push_back(found);
    if (gpus.size() > kMaxDevicesOfFile) return "it has more than " + std::to_string(kMaxDevicesOfFile) + " GPUs";
  }
  return gpus.empty() ? "there is no <gpu> below <cpu> and <pci>" : std::string();
}

/// Numbers as CUDA gives them: a file may describe only GPUs 4 to 7 of a machine.
void numberGpus(std::vector<Found>& gpus) {
  std::stable_sort(gpus.begin(), gpus.end(),
                   [](const Found& a, const Found& b) { return a.facts.physical < b.facts.physical; });
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    gpus[i].facts.physical = static_cast<int>(i);
    for (pugi::xml_node gpu : gpus[i].gpu.parent().children("gpu")) {
      if (!gpu.attribute("dev")) gpu.append_attribute("dev");
      gpu.attribute("dev").set_value(static_cast<int>(i));
    }
  }
}

}  // namespace

MachineFile readMachineFile(const std::string& path, int host) {
  MachineFile file;
  const UserFile read = readUserFile(path, kMaxBytes);
  if (!read.ok()) {
    file.complaint = read.why;
    return file;
  }
  // White space and comments stay, so that messages about the text name the file's lines.
  pugi::xml_document document;
  const auto keep = pugi::parse_default | pugi::parse_ws_pcdata | pugi::parse_comments;
  const pugi::xml_parse_result parsed = document.load_buffer(read.text.data(), read.text.size(), keep);
  if (!parsed) {
    file.complaint = std::string(parsed.description()) + " at byte " + std::to_string(parsed.offset);
    return file;
  }
  DepthCheck check;
  if (!document.traverse(check)) {
    file.complaint = "its elements are nested more than " + std::to_string(kMaxDepth) + " deep";
    return file;
  }
  const pugi::xml_node system = document.child("system");
  std::vector<Found> gpus;
  file.complaint = system ? keepHost(system, host) : "its root element is not <system>";
  if (file.complaint.empty()) file.complaint = findGpus(system, gpus);
  if (!file.complaint.empty()) return file;
  numberGpus(gpus);
  for (const Found& found : gpus) file.devices.push_back(found.facts);
  std::ostringstream text;
  document.save(text, "", pugi::format_raw | pugi::format_no_declaration);
  file.text = text.str();
  return file;
}

}  // namespace tutti::softgpu
