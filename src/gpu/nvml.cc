#include "gpu/nvml.h"

#include <fmt/format.h>

#include "base/never_destroyed.h"
#include "gpu/nvml_calls.h"

namespace tutti::gpu {

Nvml Nvml::open(const std::string& library) {
  Nvml nvml;
  DlLibrary found = DlLibrary::open(library, &nvml.why_);
  if (!found.valid()) return nvml;
  const auto start = found.function<nvml::Result (*)()>("nvmlInit_v2");
  if (start == nullptr) {
    nvml.why_ = library + " has no nvmlInit_v2";
  } else if (const nvml::Result result = start(); result != nvml::kSuccess) {
    nvml.why_ = fmt::format("{} does not start: {}", library, NvmlCalls(found).words(result));
  } else {
    nvml.library_ = std::move(found);
  }
  return nvml;
}

const Nvml& Nvml::instance() {
  static NeverDestroyed<Nvml> driver(open());
  return driver.get();
}

int Nvml::indexOf(const std::string& busId) const {
  const NvmlCalls calls(library_);
  nvml::Device device = nullptr;
  unsigned index = 0;
  if (calls.handleByBusId == nullptr || calls.index == nullptr) return -1;
  const bool known =
      calls.handleByBusId(busId.c_str(), &device) == nvml::kSuccess && calls.index(device, &index) == nvml::kSuccess;
  return known ? static_cast<int>(index) : -1;
}

NvmlMachine Nvml::readMachine() const {
  if (library_.valid()) return NvmlReader(NvmlCalls(library_)).read();
  NvmlMachine nothing;
  nothing.unknown.push_back(
      fmt::format("NVML was not found ({}): NVLinks, NVSwitches, C2C links and MIG are unknown", why_));
  return nothing;
}

}  // namespace tutti::gpu
