// Devices in use by this process: one context reference and one set of loaded kernels per device for all communicators.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "gpu/context.h"
#include "gpu/kernels.h"
#include "proxy/engine.h"

namespace tutti {

/// A device, its kernels, and the thread that drives what the host has to do for them. Thread-safe like its members.
struct PooledDevice {
  std::unique_ptr<Device> device;
  std::unique_ptr<KernelSet> kernels;
  std::shared_ptr<ProgressEngine> engine;   ///< without a thread until there is something to drive
};

/// The device of that ordinal, opened at first use and closed when its last user lets go. Any thread.
Result<std::shared_ptr<PooledDevice>> acquireDevice(const Driver& driver, int ordinal,
                                                    const std::string& hostKernelsPath);

}  // namespace tutti
