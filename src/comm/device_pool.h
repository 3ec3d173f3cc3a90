// Devices in use by this process: one context reference and one set of loaded kernels per device for all communicators.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "gpu/context.h"
#include "gpu/kernels.h"

namespace tutti {

/// A device and its kernels. Thread-safe like its members.
struct PooledDevice {
  std::unique_ptr<Device> device;
  std::unique_ptr<KernelSet> kernels;
};

/// The device of that ordinal, opened at first use and closed when its last user lets go. Any thread.
Result<std::shared_ptr<PooledDevice>> acquireDevice(const Driver& driver, int ordinal,
                                                    const std::string& hostKernelsPath);

}  // namespace tutti
