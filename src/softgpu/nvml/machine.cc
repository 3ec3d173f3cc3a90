#include "softgpu/nvml/machine.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace tutti::softgpu::nvml {
namespace {

Machine readMachine() {
  Machine made;
  const Settings settings = readSettings();
  MachineFile file;
  const std::vector<DeviceFacts> devices = describeDevices(settings, file);
  std::vector<Place> places = readPlaces(file);
  places.resize(devices.size());
  const std::string boot = readBootId();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    made.gpus.push_back({static_cast<unsigned>(i), devices[i], uuidOf(devices[i], settings.host, boot), places[i]});
  }
  made.memoryBytes = settings.memoryBytes;
  return made;
}

}  // namespace

std::string Gpu::uuidText() const {
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    char digits[4];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

std::string Gpu::serial() const {
  std::uint64_t hash = 0;
  std::memcpy(&hash, uuid.bytes + 8, sizeof(hash));
  char text[24];
  std::snprintf(text, sizeof(text), "%013llu", static_cast<unsigned long long>(hash % 10'000'000'000'000ull));
  return text;
}

const Machine& machine() {
  static const auto* all = new Machine(readMachine());  // threads may ask until the very end of the process
  return *all;
}

std::uint64_t usedBytes(const Gpu& gpu) {
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return 0;
  std::size_t bytes = 0;
  const auto ask = reinterpret_cast<int (*)(int, std::size_t*)>(::dlsym(driver, "softgpuMemoryUse"));
  if (ask == nullptr || ask(gpu.facts.physical, &bytes) != CUDA_SUCCESS) bytes = 0;
  ::dlclose(driver);
  return bytes;
}

}  // namespace tutti::softgpu::nvml
