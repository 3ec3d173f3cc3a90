// What the software GPU's libcuda.so.1 offers beyond CUDA's own calls: how much of a device's memory is in use.
#pragma once

#include <cstddef>

extern "C" {
/// Bytes of device memory that this process has of the device with this number, counted without CUDA_VISIBLE_DEVICES.
/// Needs no context, unlike cuMemGetInfo. CUDA_ERROR_INVALID_DEVICE for a device that is not shown to this process,
/// CUDA_ERROR_NOT_INITIALIZED before cuInit. The result is a CUresult. Any thread.
int softgpuMemoryUse(int physical, std::size_t* bytes);
}
