// What every function shares: whether NVML has been started, the error boundary, and the way from handles to devices.
#pragma once

#include <new>
#include <string>

#include "softgpu/nvml/abi.h"
#include "softgpu/nvml/machine.h"

namespace tutti::softgpu::nvml {

/// More calls of nvmlInit than of nvmlShutdown.
bool started();

/// The handle of machine().gpus[index]; the same for the life of the process.
Device handleOf(unsigned index);
/// Null for what is no handle.
const Gpu* gpuOf(Device device);

/// Runs `body`; no exception leaves.
template <class Body>
Result guarded(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return kMemory;
  } catch (...) {
    return kUnknown;
  }
}

/// The same for all that needs nvmlInit.
template <class Body>
Result call(Body&& body) {
  return started() ? guarded(body) : kUninitialized;
}

/// The same with a device.
template <class Body>
Result withGpu(Device device, Body&& body) {
  return call([&]() -> Result {
    const Gpu* gpu = gpuOf(device);
    return gpu == nullptr ? kInvalidArgument : body(*gpu);
  });
}

/// A device's answer that is a plain number.
template <class Number, class Ask>
Result tell(Device device, Number* to, Ask&& ask) {
  return withGpu(device, [&](const Gpu& gpu) -> Result {
    if (to == nullptr) return kInvalidArgument;
    *to = ask(gpu);
    return kSuccess;
  });
}

/// Writes the place of a PCI function, in numbers and as text; leaves the ids of its maker alone.
void fillPciInfo(const Function& function, PciInfo& info);

/// Copies text with its end into the caller's `length` bytes.
Result copyText(const std::string& text, char* to, unsigned length);

}  // namespace tutti::softgpu::nvml
