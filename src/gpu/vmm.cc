#include "gpu/vmm.h"

#include <memory>
#include <vector>

#include "base/handle.h"
#include "gpu/context.h"

namespace tutti::gpu {
namespace {

/// A physical allocation, a reserved range of addresses, and a mapping: the three things VMM memory consists of.
struct PhysicalTraits {
  struct Type {
    const Driver* driver = nullptr;
    CUmemGenericAllocationHandle handle = 0;
    friend bool operator==(const Type&, const Type&) = default;
  };
  static Type invalid() { return {}; }
  static void close(Type held) {
    checkCu(*held.driver, held.driver->cuMemRelease(held.handle), "cuMemRelease").ignore();
  }
};
struct Range {
  const Driver* driver = nullptr;
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  friend bool operator==(const Range&, const Range&) = default;
};
struct ReservationTraits {
  using Type = Range;
  static Type invalid() { return {}; }
  static void close(Type held) {
    checkCu(*held.driver, held.driver->cuMemAddressFree(held.address, held.bytes), "cuMemAddressFree").ignore();
  }
};
struct MappingTraits {
  using Type = Range;
  static Type invalid() { return {}; }
  static void close(Type held) {
    checkCu(*held.driver, held.driver->cuMemUnmap(held.address, held.bytes), "cuMemUnmap").ignore();
  }
};

CUmemAllocationProp propertiesFor(CUdevice device, bool gpuDirect) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  properties.allocFlags.gpuDirectRDMACapable = gpuDirect ? 1 : 0;
  return properties;
}

/// This device and every visible one that can reach it.
Result<std::vector<CUmemAccessDesc>> readersOf(const Device& owner) {
  const Driver& driver = owner.driver();
  std::vector<CUmemAccessDesc> readers;
  ASSIGN(const int count, deviceCount(driver));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    TRY(checkCu(driver, driver.cuDeviceGet(&device, ordinal), "cuDeviceGet", ordinal));
    int reaches = device == owner.handle() ? 1 : 0;
    if (reaches == 0) {
      TRY(checkCu(driver, driver.cuDeviceCanAccessPeer(&reaches, device, owner.handle()), "cuDeviceCanAccessPeer",
                  ordinal));
    }
    if (reaches == 0) continue;
    CUmemAccessDesc reader{};
    reader.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    reader.location.id = device;
    reader.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    readers.push_back(reader);
  }
  return readers;
}

Result<void*> allocateMapped(const Device& device, std::size_t bytes) {
  const Driver& driver = device.driver();
  int gpuDirect = 0;
  TRY(device.check(driver.cuDeviceGetAttribute(&gpuDirect, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                                               device.handle()),
                   "cuDeviceGetAttribute"));
  const CUmemAllocationProp properties = propertiesFor(device.handle(), gpuDirect != 0);
  std::size_t grain = 0;
  TRY(device.check(driver.cuMemGetAllocationGranularity(&grain, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                   "cuMemGetAllocationGranularity"));
  const std::size_t rounded = grain == 0 ? bytes : (bytes + grain - 1) / grain * grain;
  CUmemGenericAllocationHandle raw = 0;
  TRY(checkCu(driver, driver.cuMemCreate(&raw, rounded, &properties, 0),
              CuCall{"cuMemCreate", device.ordinal(), rounded}));
  // The mapping keeps the memory alive: our reference goes away at the end of this function in any case.
  const Handle<PhysicalTraits> physical({&driver, raw});
  CUdeviceptr address = 0;
  TRY(checkCu(driver, driver.cuMemAddressReserve(&address, rounded, grain, 0, 0),
              CuCall{"cuMemAddressReserve", device.ordinal(), rounded}));
  Handle<ReservationTraits> reservation({&driver, address, rounded});
  TRY(device.check(driver.cuMemMap(address, rounded, 0, raw, 0), "cuMemMap"));
  Handle<MappingTraits> mapping({&driver, address, rounded});
  ASSIGN(const std::vector<CUmemAccessDesc> readers, readersOf(device));
  TRY(device.check(driver.cuMemSetAccess(address, rounded, readers.data(), readers.size()), "cuMemSetAccess"));
  static_cast<void>(mapping.release());
  static_cast<void>(reservation.release());
  return reinterpret_cast<void*>(address);
}

Status freeMapped(const Driver& driver, CUdeviceptr address) {
  CUmemGenericAllocationHandle raw = 0;
  TRY(checkCu(driver, driver.cuMemRetainAllocationHandle(&raw, reinterpret_cast<void*>(address)),
              CuCall{"cuMemRetainAllocationHandle", -1, 0, "a pointer that ncclMemAlloc did not give"}));
  const Handle<PhysicalTraits> physical({&driver, raw});
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  TRY(checkCu(driver, driver.cuMemGetAddressRange(&base, &bytes, address), "cuMemGetAddressRange"));
  TRY(checkCu(driver, driver.cuMemUnmap(base, bytes), "cuMemUnmap"));
  return checkCu(driver, driver.cuMemAddressFree(base, bytes), "cuMemAddressFree");
}

}  // namespace

Result<void*> allocateShared(const Driver& driver, int ordinal, std::size_t bytes, bool allowVmm) {
  if (bytes == 0) return static_cast<void*>(nullptr);
  ASSIGN(const std::unique_ptr<Device> device, Device::create(driver, ordinal));
  ASSIGN(const ContextGuard guard, device->enter());
  if (allowVmm && device->facts().vmm) return allocateMapped(*device, bytes);
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
    if (allowVmm && device->facts().vmm) return freeMapped(driver, address);
    TRY(device->check(driver.cuMemFree(address), "cuMemFree"));
  }
  return device->check(driver.cuDevicePrimaryCtxRelease(device->handle()), "cuDevicePrimaryCtxRelease");
}

}  // namespace tutti::gpu
