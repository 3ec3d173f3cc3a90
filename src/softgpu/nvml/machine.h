// The machine that NVML tells about: all devices of the software GPU, whatever CUDA_VISIBLE_DEVICES says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "softgpu/device/device_facts.h"
#include "softgpu/nvml/place.h"

namespace tutti::softgpu::nvml {

/// One device.
struct Gpu {
  unsigned index = 0;
  DeviceFacts facts;
  CUuuid uuid{};
  Place place;

  Function function() const { return {facts.domain, facts.bus, facts.slot}; }
  /// "GPU-" and the uuid in hexadecimal.
  std::string uuidText() const;
  /// 13 digits that follow from the uuid.
  std::string serial() const;
};

struct Machine {
  std::vector<Gpu> gpus;
  std::uint64_t memoryBytes = 0;  ///< of each
};

/// Read from the environment at the first call, the same for the life of the process: what it was then, as cuInit has
/// it. Throws std::bad_alloc. Any thread.
const Machine& machine();

/// Bytes of the device's memory that this process has, as its libcuda.so.1 counts them; 0 where that is not loaded, not
/// the software GPU's, or has not begun. Any thread.
std::uint64_t usedBytes(const Gpu& gpu);

}  // namespace tutti::softgpu::nvml
