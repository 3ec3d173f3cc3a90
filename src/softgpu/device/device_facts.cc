#include "softgpu/device/device_facts.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "softgpu/device/topology.h"
#include "softgpu/exec/random.h"
#include "softgpu/say.h"

namespace tutti::softgpu {
namespace {

constexpr unsigned kFirstBus = 0x10;

std::uint64_t hashText(const std::string& text, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325ull ^ seed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return Random(hash).next();
}

}  // namespace

std::vector<DeviceFacts> describeDevices(const Settings& settings, MachineFile& file) {
  const auto count = static_cast<std::size_t>(settings.devices);
  if (!settings.topology.empty()) {
    file = readMachineFile(settings.topology, settings.host);
    if (file.complaint.empty()) {
      std::vector<DeviceFacts> devices = file.devices;
      if (settings.devicesGiven && devices.size() > count) devices.resize(count);
      return devices;
    }
    say("SOFTGPU_TOPO=%s is ignored: %s", settings.topology.c_str(), file.complaint.c_str());
  }
  std::vector<DeviceFacts> devices(count);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].physical = static_cast<int>(i);
    devices[i].domain = static_cast<unsigned>(i / 128);
    devices[i].bus = kFirstBus + static_cast<unsigned>(i % 128);
  }
  return devices;
}

std::string DeviceFacts::busId() const {
  char text[32];
  std::snprintf(text, sizeof(text), "%04x:%02x:%02x.0", domain, bus, slot);
  return text;
}

std::string readBootId() {
  constexpr const char* kFile = "/proc/sys/kernel/random/boot_id";
  std::ifstream file(kFile);
  std::string id;
  if (std::getline(file, id)) return id;
  say("%s cannot be read (%s): other processes will not know these devices", kFile, std::strerror(errno));
  return "process " + std::to_string(::getpid());
}

CUuuid uuidOf(const DeviceFacts& facts, int host, const std::string& boot) {
  CUuuid uuid;
  const auto seed = static_cast<std::uint64_t>(facts.physical) | static_cast<std::uint64_t>(host) << 32;
  const std::uint64_t halves[2] = {hashText(boot, 1), hashText(facts.busId(), seed)};
  std::memcpy(uuid.bytes, halves, sizeof(halves));
  return uuid;
}

}  // namespace tutti::softgpu
