// A launch of one kernel, with what newer drivers let it say.
#pragma once

#include "gpu/driver.h"

namespace tutti::gpu {

/// Plain values; one-dimensional.
struct KernelLaunch {
  CUfunction function = nullptr;
  unsigned grid = 1;        ///< blocks
  unsigned block = 32;      ///< threads of a block
  void** params = nullptr;  ///< copied before launchKernel() returns
  CUstream stream = nullptr;
  /// Its fences do not wait for what kernels in the default domain have written to memory: of this device, these are
  /// the application's. Compute capability 9.0 and later.
  bool remoteDomain = false;
  /// Recorded when all blocks have begun; made without timing, and the launch is not captured; null: nobody asks.
  /// CUDA 12.3 and later.
  CUevent begun = nullptr;
};

/// The driver's answer. The context of the stream is current. Without anything newer it is cuLaunchKernel, which every
/// driver has; else cuLaunchKernelEx, which must be there.
CUresult launchKernel(const Driver& driver, const KernelLaunch& launch);
/// The call that launchKernel() makes, for the text of its error.
const char* callOf(const KernelLaunch& launch);

}  // namespace tutti::gpu
