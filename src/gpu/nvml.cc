#include "gpu/nvml.h"

#include "base/never_destroyed.h"

namespace tutti {

namespace {

constexpr int kNvmlSuccess = 0;

}  // namespace

Nvml Nvml::open(const std::string& library) {
  Nvml nvml;
  DlLibrary found = DlLibrary::open(library);
  const auto start = found.function<int (*)()>("nvmlInit_v2");
  if (start != nullptr && start() == kNvmlSuccess) nvml.library_ = std::move(found);
  return nvml;
}

const Nvml& Nvml::instance() {
  static NeverDestroyed<Nvml> driver(open());
  return driver.get();
}

int Nvml::indexOf(const std::string& busId) const {
  const auto find = library_.function<int (*)(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
  const auto number = library_.function<int (*)(void*, unsigned*)>("nvmlDeviceGetIndex");
  if (find == nullptr || number == nullptr) return -1;
  void* device = nullptr;
  unsigned index = 0;
  const bool known = find(busId.c_str(), &device) == kNvmlSuccess && number(device, &index) == kNvmlSuccess;
  return known ? static_cast<int>(index) : -1;
}

}  // namespace tutti
