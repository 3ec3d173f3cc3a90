// A device of the software GPU for tests of the network's ends.
#pragma once

#include <memory>
#include <utility>

#include "gpu/context.h"
#include "gpu/driver_calls.h"

namespace tutti::test {

/// Opened once and never closed: what the driver keeps for a thread goes before static objects do. Null where there is
/// none.
inline gpu::Device* testDevice() {
  static gpu::Device* const kDevice = []() -> gpu::Device* {
    const auto driver = gpu::loadDriver();
    auto device = driver.ok() ? gpu::Device::create(*driver.value(), 0)
                              : Result<std::unique_ptr<gpu::Device>>(Status(ncclSystemError));
    return device.ok() ? std::move(device).value().release() : nullptr;
  }();
  return kDevice;
}

}  // namespace tutti::test
