#include "gpu/vmm.h"

#include <memory>

#include "gpu/context.h"
#include "gpu/mapped_memory.h"
#include "gpu/memory_ledger.h"

namespace tutti::gpu {

Result<void*> allocateShared(const Driver& driver, int ordinal, std::size_t bytes, bool allowVmm) {
  if (bytes == 0) return static_cast<void*>(nullptr);
  ASSIGN(const std::unique_ptr<Device> device, Device::create(driver, ordinal));
  ASSIGN(const ContextGuard guard, device->enter());
  if (allowVmm && device->facts().vmm) {
    ASSIGN(MappedMemory memory,
           MappedMemory::create(*device, bytes, "ncclMemAlloc", MappedFor::EveryDeviceThatReachesIt));
    return reinterpret_cast<void*>(memory.release());
  }
  CUdeviceptr address = 0;
  TRY(checkCu(driver, driver.cuMemAlloc(&address, bytes), CuCall{"cuMemAlloc", ordinal, bytes}));
  // Released contexts take their memory along: the application's pointer keeps this reference until freeShared().
  CUcontext kept = nullptr;
  const CUresult retained = driver.cuDevicePrimaryCtxRetain(&kept, device->handle());
  if (retained != CUDA_SUCCESS) {
    checkCu(driver, driver.cuMemFree(address), "cuMemFree", ordinal).ignore();
    return checkCu(driver, retained, "cuDevicePrimaryCtxRetain", ordinal);
  }
  return reinterpret_cast<void*>(address);
}

Status freeShared(const Driver& driver, void* pointer, bool allowVmm) {
  if (pointer == nullptr) return {};
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  int ordinal = -1;
  TRY(checkCu(driver, driver.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address),
              CuCall{"cuPointerGetAttribute", -1, 0, "a pointer that is no device memory"}));
  ASSIGN(const std::unique_ptr<Device> device, Device::create(driver, ordinal));
  {
    ASSIGN(const ContextGuard guard, device->enter());
    if (allowVmm && device->facts().vmm) return freeMapped(*device, address);
    TRY(device->check(driver.cuMemFree(address), "cuMemFree"));
  }
  return device->check(driver.cuDevicePrimaryCtxRelease(device->handle()), "cuDevicePrimaryCtxRelease");
}

}  // namespace tutti::gpu
