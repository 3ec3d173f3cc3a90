#include "softgpu/device/settings.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "softgpu/say.h"

namespace tutti::softgpu {
namespace {

constexpr std::uint64_t kDefaultMemory = std::uint64_t{64} << 30;
constexpr int kMaxDevices = 1024;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

void complain(const char* name, const std::string& value, const char* expected) {
  say("%s=%s is ignored: expected %s", name, value.c_str(), expected);
}

std::optional<std::uint64_t> number(const std::string& text) {
  if (text.empty() || text[0] == '-') return std::nullopt;
  char* end = nullptr;
  std::uint64_t value = std::strtoull(text.c_str(), &end, 0);
  if (end == text.c_str()) return std::nullopt;
  const std::string suffix = end;
  if (suffix == "K" || suffix == "k") return value << 10;
  if (suffix == "M" || suffix == "m") return value << 20;
  if (suffix == "G" || suffix == "g") return value << 30;
  if (!suffix.empty()) return std::nullopt;
  return value;
}

std::vector<std::string> splitByComma(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

void readDevices(Settings& settings) {
  const std::string text = variable("SOFTGPU_DEVICES");
  if (text.empty()) return;
  const auto count = number(text);
  if (!count || *count > kMaxDevices) return complain("SOFTGPU_DEVICES", text, "a number from 0 to 1024");
  settings.devices = static_cast<int>(*count);
  settings.devicesGiven = true;
}

void readTopology(Settings& settings) {
  settings.topology = variable("SOFTGPU_TOPO");
  const std::string text = variable("SOFTGPU_HOST");
  if (text.empty()) return;
  const auto host = number(text);
  if (!host || *host > 65535) return complain("SOFTGPU_HOST", text, "a host's number in SOFTGPU_TOPO, from 0");
  settings.host = static_cast<int>(*host);
}

void readSchedule(Settings& settings) {
  const std::string text = variable("SOFTGPU_SCHEDULE");
  if (text.empty() || text == "fair") return;
  const std::string prefix = "random:";
  const auto seed = text.rfind(prefix, 0) == 0 ? number(text.substr(prefix.size())) : std::nullopt;
  if (!seed) return complain("SOFTGPU_SCHEDULE", text, "fair or random:SEED");
  settings.randomSeed = *seed;
}

void readWeakMemory(Settings& settings) {
  const std::string text = variable("SOFTGPU_WEAK_MEMORY");
  if (text.empty()) return;
  settings.weakSeed = number(text);
  if (!settings.weakSeed) complain("SOFTGPU_WEAK_MEMORY", text, "a number, the seed");
}

void readFailures(Settings& settings) {
  for (const std::string& part : splitByComma(variable("SOFTGPU_FAIL"))) {
    const std::size_t colon = part.find(':');
    const auto nth = colon == std::string::npos ? std::optional<std::uint64_t>(1) : number(part.substr(colon + 1));
    if (!nth || *nth == 0) {
      complain("SOFTGPU_FAIL", part, "NAME:N, for the Nth call of a function to fail");
      continue;
    }
    settings.failures[part.substr(0, colon)] = static_cast<int>(*nth);
  }
}

std::uint64_t defaultMemory() {
  struct sysinfo info = {};
  if (sysinfo(&info) != 0) return kDefaultMemory;
  return std::min<std::uint64_t>(kDefaultMemory, std::uint64_t{info.totalram} * info.mem_unit);
}

void readLimits(Settings& settings) {
  const std::string slots = variable("SOFTGPU_BLOCK_SLOTS");
  if (!slots.empty()) {
    const auto count = number(slots);
    if (!count || *count == 0 || *count > 1u << 20) {
      complain("SOFTGPU_BLOCK_SLOTS", slots, "a number from 1");
    } else {
      settings.blockSlots = static_cast<int>(*count);
    }
  }
  settings.memoryBytes = defaultMemory();
  const std::string memory = variable("SOFTGPU_MEMORY");
  if (memory.empty()) return;
  const auto bytes = number(memory);
  if (!bytes || *bytes == 0) return complain("SOFTGPU_MEMORY", memory, "bytes, with K, M or G if you like");
  settings.memoryBytes = *bytes;
}

void readVisible(Settings& settings) {
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text == nullptr) return;
  std::vector<int> ordinals;
  for (const std::string& part : splitByComma(text)) {
    const auto ordinal = number(part);
    if (!ordinal) break;  // the first word that names no device ends the list, as with the real driver
    ordinals.push_back(static_cast<int>(*ordinal));
  }
  settings.visible = ordinals;
}

void readNicReach(Settings& settings) {
  const std::string text = variable("SOFTGPU_GDR");
  if (text.empty() || text == "none") return;
  if (text == "peer") {
    settings.nicReach = NicReach::Address;
  } else if (text == "dmabuf") {
    settings.nicReach = NicReach::DmaBufs;
  } else {
    complain("SOFTGPU_GDR", text, "none, peer or dmabuf");
  }
}

/// Empty where code is not to be kept, or there is no place that is the user's.
std::string ptxCache() {
  if (const char* given = std::getenv("SOFTGPU_PTX_CACHE")) return given;
  if (const std::string caches = variable("XDG_CACHE_HOME"); !caches.empty()) return caches + "/tutti/ptx";
  const std::string home = variable("HOME");
  return home.empty() ? home : home + "/.cache/tutti/ptx";
}

}  // namespace

Settings readSettings() {
  Settings settings;
  readDevices(settings);
  readTopology(settings);
  readSchedule(settings);
  readWeakMemory(settings);
  readFailures(settings);
  readLimits(settings);
  readVisible(settings);
  readNicReach(settings);
  settings.ptxLibrary = variable("SOFTGPU_PTX_LIBRARY");
  settings.ptxCache = ptxCache();
  return settings;
}

}  // namespace tutti::softgpu
