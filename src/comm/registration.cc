#include "comm/registration.h"

#include <fmt/format.h>

#include "base/log.h"
#include "comm/launch/device_pool.h"
#include "comm/settings/comm_settings.h"
#include "comm/settings/current_settings.h"
#include "comm/state/communicator.h"
#include "comm/state/registrations.h"
#include "gpu/address_range.h"

namespace tutti::comm {

bool registersBuffers() {
  return currentCommSettings().registersBuffers;
}

Result<void*> registerBuffer(ncclComm& comm, void* buffer, std::size_t bytes) {
  const gpu::Device& device = *comm.parts.device->device;
  const auto address = reinterpret_cast<CUdeviceptr>(buffer);
  if (bytes == 0) return fail(ncclInvalidArgument, "CommRegister : size is 0 ({})", describeComm(comm));
  ASSIGN(const gpu::AddressRange range, gpu::rangeOf(device, address));
  if (range.kind == gpu::MemoryKind::Host) return nullptr;
  if (range.kind == gpu::MemoryKind::Unknown) {
    return fail(ncclUnhandledCudaError,
                "CommRegister : CUDA does not know the address {} ({}). Register what cudaMalloc or ncclMemAlloc gave, "
                "before it is freed",
                fmt::ptr(buffer), describeComm(comm));
  }
  if (range.kind == gpu::MemoryKind::Device && range.device != device.ordinal()) {
    return fail(ncclInvalidArgument,
                "CommRegister : {} is memory of device {}, but the communicator ({}) works on device {}",
                fmt::ptr(buffer), range.device, describeComm(comm), device.ordinal());
  }
  ASSIGN(const std::size_t covered, gpu::coveredFrom(device, address, bytes));
  if (covered < bytes) {
    return fail(ncclInvalidArgument, "CommRegister : of {} bytes from {} on, only {} are allocated ({})", bytes,
                fmt::ptr(buffer), covered, describeComm(comm));
  }
  void* const handle = comm.registrations->add(buffer, bytes);
  logTrace(kReg, "comm {} registers {} bytes at {} as {}", fmt::ptr(&comm), bytes, fmt::ptr(buffer), handle);
  return handle;
}

Status deregisterBuffer(ncclComm& comm, void* handle) {
  if (comm.registrations->remove(handle)) return {};
  return fail(
      ncclInvalidUsage,
      "Deregister: Could not find handle {}: {} has no such registration. Was it taken back before, or given by "
      "another communicator?",
      handle, describeComm(comm));
}

}  // namespace tutti::comm
