#include "gpu/mapped_memory.h"

#include <fcntl.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "gpu/memory_ledger.h"
#include "gpu/stream.h"

namespace tutti::gpu {

void detail::PhysicalTraits::close(Type held) {
  giveBack(held, &Driver::cuMemRelease, "cuMemRelease");
}

void detail::ReservationTraits::close(Type held) {
  const auto guard = held.device->enter();
  const Driver& driver = held.device->driver();
  held.device->check(driver.cuMemAddressFree(held.raw.address, held.raw.bytes), "cuMemAddressFree").ignore();
}

void detail::MappingTraits::close(Type held) {
  const auto guard = held.device->enter();
  held.device->check(held.device->driver().cuMemUnmap(held.raw.address, held.raw.bytes), "cuMemUnmap").ignore();
}

namespace {

CUmemAllocationProp propertiesFor(CUdevice device, bool gpuDirect) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  properties.allocFlags.gpuDirectRDMACapable = gpuDirect ? 1 : 0;
  return properties;
}

CUmemAccessDesc accessOf(CUdevice device) {
  CUmemAccessDesc reader{};
  reader.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  reader.location.id = device;
  reader.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return reader;
}

Result<std::vector<CUmemAccessDesc>> readersOf(const Device& owner, MappedFor whom) {
  std::vector<CUmemAccessDesc> readers{accessOf(owner.handle())};
  if (whom == MappedFor::OwnDevice) return readers;
  const Driver& driver = owner.driver();
  ASSIGN(const int count, deviceCount(driver));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    TRY(checkCu(driver, driver.cuDeviceGet(&device, ordinal), "cuDeviceGet", ordinal));
    if (device == owner.handle()) continue;
    int reaches = 0;
    TRY(checkCu(driver, driver.cuDeviceCanAccessPeer(&reaches, device, owner.handle()), "cuDeviceCanAccessPeer",
                ordinal));
    if (reaches != 0) readers.push_back(accessOf(device));
  }
  return readers;
}

}  // namespace

Status MappedMemory::map(std::size_t bytes, std::size_t grain, MappedFor readers) {
  const Driver& driver = device_->driver();
  CUdeviceptr address = 0;
  TRY(checkCu(driver, driver.cuMemAddressReserve(&address, bytes, grain, 0, 0),
              CuCall{"cuMemAddressReserve", device_->ordinal(), bytes}));
  reservation_ = Handle<detail::ReservationTraits>({device_, {address, bytes}});
  TRY(device_->check(driver.cuMemMap(address, bytes, 0, physical_.get().raw, 0), "cuMemMap"));
  mapping_ = Handle<detail::MappingTraits>({device_, {address, bytes}});
  ASSIGN(const std::vector<CUmemAccessDesc> access, readersOf(*device_, readers));
  return device_->check(driver.cuMemSetAccess(address, bytes, access.data(), access.size()), "cuMemSetAccess");
}

Result<MappedMemory> MappedMemory::create(const Device& device, std::size_t bytes, const MemoryUse& use,
                                          MappedFor readers) {
  const Driver& driver = device.driver();
  ASSIGN(const ContextGuard guard, device.enter());
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
              CuCall{"cuMemCreate", device.ordinal(), rounded, std::string(use.about)}));
  MappedMemory memory(device, Handle<detail::PhysicalTraits>({&device, raw}));
  TRY(memory.map(rounded, grain, readers));
  if (use.ledger != nullptr) memory.entry_ = std::make_shared<MemoryLedger::Entry>(use.ledger, use.kind, rounded);
  logTrace(kAlloc, "{} bytes on device {} at {:#x} for {}", rounded, device.ordinal(), memory.address(), use.about);
  return memory;
}

Result<MappedMemory> MappedMemory::adopt(const Device& device, const Fd& descriptor, std::size_t bytes,
                                         std::string_view about) {
  const Driver& driver = device.driver();
  ASSIGN(const ContextGuard guard, device.enter());
  CUmemGenericAllocationHandle raw = 0;
  auto* const handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor.get()));
  TRY(checkCu(driver, driver.cuMemImportFromShareableHandle(&raw, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CuCall{"cuMemImportFromShareableHandle", device.ordinal(), bytes, "memory of " + std::string(about)}));
  MappedMemory memory(device, Handle<detail::PhysicalTraits>({&device, raw}));
  TRY(memory.map(bytes, 0, MappedFor::OwnDevice));
  return memory;
}

Result<Fd> MappedMemory::descriptor() const {
  const Driver& driver = device_->driver();
  ASSIGN(const ContextGuard guard, device_->enter());
  int fd = -1;
  TRY(device_->check(
      driver.cuMemExportToShareableHandle(&fd, physical_.get().raw, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      "cuMemExportToShareableHandle"));
  Fd descriptor(fd);
  // A program that the application starts meanwhile would keep the memory.
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0) return descriptor;
  return fail(ncclSystemError, "fcntl(FD_CLOEXEC) of a descriptor of memory of device {} failed: {}",
              device_->ordinal(), errnoText(errno));
}

CUdeviceptr MappedMemory::release() {
  static_cast<void>(reservation_.release());
  return mapping_.release().raw.address;
}

MappedMemory::~MappedMemory() {
  if (!mapping_.valid() || rests()) return;
  warn("{} bytes of device {} stay mapped at {:#x}: its copies have not come to their end", size(), device_->ordinal(),
       address());
  static_cast<void>(reservation_.release());
  static_cast<void>(mapping_.release());
}

bool MappedMemory::rests() const {
  const ErrorsAsInfo harmless;
  return waitStream(*device_, device_->ownStream(), nullptr).ok();
}

Status freeMapped(const Device& device, CUdeviceptr address) {
  const Driver& driver = device.driver();
  CUmemGenericAllocationHandle raw = 0;
  TRY(checkCu(driver, driver.cuMemRetainAllocationHandle(&raw, reinterpret_cast<void*>(address)),
              CuCall{"cuMemRetainAllocationHandle", -1, 0, "a pointer that ncclMemAlloc did not give"}));
  const Handle<detail::PhysicalTraits> physical({&device, raw});
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  TRY(device.check(driver.cuMemGetAddressRange(&base, &bytes, address), "cuMemGetAddressRange"));
  TRY(device.check(driver.cuMemUnmap(base, bytes), "cuMemUnmap"));
  return device.check(driver.cuMemAddressFree(base, bytes), "cuMemAddressFree");
}

}  // namespace tutti::gpu
