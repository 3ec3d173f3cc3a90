// Where memory is, as older calls say it.
#pragma once

#include <driver_types.h>

namespace tutti::softgpu::cuda12 {

/// The place that a device number stands for, which may be that of the processors.
inline cudaMemLocation placeOf(int device) {
  cudaMemLocation place{};
  place.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  place.id = device == cudaCpuDeviceId ? 0 : device;
  return place;
}

}  // namespace tutti::softgpu::cuda12
