// How many blocks of a kernel a multiprocessor takes.
#pragma once

#include <cstddef>

#include "softgpu/device/device.h"
#include "softgpu/device/module.h"

namespace tutti::softgpu {

inline constexpr unsigned kMostBlockThreads = 1024;

int processorsOf(const Device& device);
/// As many as a GPU of compute capability 9.0 would take; 0 where not even one fits.
int blocksPerProcessor(const Function& function, unsigned threads, std::size_t dynamicBytes);

}  // namespace tutti::softgpu
