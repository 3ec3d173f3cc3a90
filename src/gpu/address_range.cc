#include "gpu/address_range.h"

#include <algorithm>

namespace tutti::gpu {

Result<AddressRange> rangeOf(const Device& device, CUdeviceptr address) {
  const Driver& driver = device.driver();
  ASSIGN(const ContextGuard context, device.enter());
  AddressRange range;
  unsigned type = 0;
  unsigned managed = 0;
  if (driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS || type == 0) {
    return range;
  }
  TRY(device.check(driver.cuPointerGetAttribute(&range.device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address),
                   "cuPointerGetAttribute"));
  TRY(device.check(driver.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address),
                   "cuPointerGetAttribute"));
  range.kind = managed != 0                   ? MemoryKind::Managed
               : type == CU_MEMORYTYPE_DEVICE ? MemoryKind::Device
                                              : MemoryKind::Host;
  if (range.kind == MemoryKind::Host) return range;
  TRY(device.check(driver.cuMemGetAddressRange(&range.base, &range.bytes, address), "cuMemGetAddressRange"));
  return range;
}

Result<std::size_t> coveredFrom(const Device& device, CUdeviceptr address, std::size_t bytes) {
  ASSIGN(const AddressRange first, rangeOf(device, address));
  AddressRange range = first;
  std::size_t covered = 0;
  while (range.bytes != 0 && range.kind == first.kind && range.device == first.device) {
    covered = std::min<std::size_t>(range.base + range.bytes - address, bytes);
    if (covered == bytes) break;
    ASSIGN(range, rangeOf(device, address + covered));
  }
  return covered;
}

}  // namespace tutti::gpu
