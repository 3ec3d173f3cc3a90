#include "gpu/context.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include "base/environment.h"
#include "base/log.h"
#include "base/settings/params.h"
#include "gpu/nvml.h"

namespace tutti::gpu {

Result<ContextGuard> ContextGuard::enter(const Driver& driver, CUcontext context) {
  TRY(checkCu(driver, driver.cuCtxPushCurrent(context), "cuCtxPushCurrent"));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  const CUresult exchanged = driver.cuThreadExchangeStreamCaptureMode(&mode);
  if (exchanged != CUDA_SUCCESS) {
    CUcontext popped = nullptr;
    static_cast<void>(driver.cuCtxPopCurrent(&popped));
    return checkCu(driver, exchanged, "cuThreadExchangeStreamCaptureMode");
  }
  return ContextGuard(driver, mode);
}

ContextGuard::ContextGuard(ContextGuard&& other) noexcept
    : driver_(std::exchange(other.driver_, nullptr)), mode_(other.mode_) {}

ContextGuard::~ContextGuard() {
  if (driver_ == nullptr) return;
  CUcontext popped = nullptr;
  checkCu(*driver_, driver_->cuThreadExchangeStreamCaptureMode(&mode_), "cuThreadExchangeStreamCaptureMode").ignore();
  checkCu(*driver_, driver_->cuCtxPopCurrent(&popped), "cuCtxPopCurrent").ignore();
}

void Device::RetainedContext::close(Type held) {
  checkCu(*held.driver, held.driver->cuDevicePrimaryCtxRelease(held.device), "cuDevicePrimaryCtxRelease", held.device)
      .ignore();
}

Result<std::unique_ptr<Device>> Device::create(const Driver& driver, int ordinal) {
  ASSIGN(CudaDeviceFacts facts, readDeviceFacts(driver, ordinal));
  CUdevice handle = 0;
  TRY(checkCu(driver, driver.cuDeviceGet(&handle, ordinal), "cuDeviceGet", ordinal));
  std::unique_ptr<Device> device(new Device(driver, ordinal, handle, std::move(facts)));
  CUcontext context = nullptr;
  TRY(device->check(driver.cuDevicePrimaryCtxRetain(&context, handle), "cuDevicePrimaryCtxRetain"));
  device->context_ = Handle<RetainedContext>({&driver, handle, context});
  ASSIGN(const ContextGuard guard, device->enter());
  TRY(device->check(driver.cuStreamCreate(&device->ownStream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  return device;
}

Device::~Device() {
  if (ownStream_ == nullptr) return;
  const auto guard = enter();
  if (guard.ok()) check(driver_->cuStreamDestroy(ownStream_), "cuStreamDestroy").ignore();
}

Result<int> deviceCount(const Driver& driver) {
  int count = 0;
  TRY(checkCu(driver, driver.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  return count;
}

Result<int> currentDevice(const Driver& driver) {
  CUcontext context = nullptr;
  TRY(checkCu(driver, driver.cuCtxGetCurrent(&context), "cuCtxGetCurrent"));
  if (context == nullptr) return 0;
  CUdevice device = 0;
  TRY(checkCu(driver, driver.cuCtxGetDevice(&device), "cuCtxGetDevice"));
  // A CUdevice is not promised to be the ordinal.
  ASSIGN(const int count, deviceCount(driver));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice candidate = 0;
    TRY(checkCu(driver, driver.cuDeviceGet(&candidate, ordinal), "cuDeviceGet", ordinal));
    if (candidate == device) return ordinal;
  }
  return fail(ncclUnhandledCudaError, "The current context belongs to a device that cuDeviceGet does not list");
}

namespace {

Result<int> attribute(const Driver& driver, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  TRY(checkCu(driver, driver.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute", device));
  return value;
}

bool hasVmmCalls(const Driver& driver) {
  return driver.cuMemCreate != nullptr && driver.cuMemRelease != nullptr && driver.cuMemMap != nullptr &&
         driver.cuMemUnmap != nullptr && driver.cuMemSetAccess != nullptr && driver.cuMemAddressReserve != nullptr &&
         driver.cuMemAddressFree != nullptr && driver.cuMemGetAllocationGranularity != nullptr &&
         driver.cuMemRetainAllocationHandle != nullptr && driver.cuMemExportToShareableHandle != nullptr &&
         driver.cuMemImportFromShareableHandle != nullptr;
}

std::array<std::uint8_t, 16> uuidOf(const CUuuid& uuid) {
  std::array<std::uint8_t, 16> bytes{};
  std::copy_n(reinterpret_cast<const std::uint8_t*>(uuid.bytes), bytes.size(), bytes.begin());
  return bytes;
}

/// The software GPU's devices are shown in the order of CUDA_VISIBLE_DEVICES.
int ordinalOfAll(int visible) {
  const std::optional<std::string> shown = ProcessEnv().get("CUDA_VISIBLE_DEVICES");
  if (!shown) return visible;
  std::string_view rest = *shown;
  for (int i = 0; i < visible; ++i) {
    const std::size_t comma = rest.find(',');
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
  return static_cast<int>(parseInteger(rest.substr(0, rest.find(','))).value.value_or(-1));
}

}  // namespace

Result<CudaDeviceFacts> readDeviceFacts(const Driver& driver, int ordinal) {
  ASSIGN(const int count, deviceCount(driver));
  if (ordinal < 0 || ordinal >= count) {
    return fail(ncclInvalidArgument, "There is no CUDA device {}: this process sees {} (look at CUDA_VISIBLE_DEVICES)",
                ordinal, count);
  }
  CUdevice device = 0;
  TRY(checkCu(driver, driver.cuDeviceGet(&device, ordinal), "cuDeviceGet", ordinal));
  CudaDeviceFacts facts;
  char text[128] = {};
  TRY(checkCu(driver, driver.cuDeviceGetName(text, sizeof(text) - 1, device), "cuDeviceGetName", ordinal));
  facts.name = text;
  TRY(checkCu(driver, driver.cuDeviceGetPCIBusId(text, sizeof(text) - 1, device), "cuDeviceGetPCIBusId", ordinal));
  facts.busIdText = text;
  std::transform(facts.busIdText.begin(), facts.busIdText.end(), facts.busIdText.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  facts.busId = packBusId(facts.busIdText);
  CUuuid uuid{};
  TRY(checkCu(driver, driver.cuDeviceGetUuid(&uuid, device), "cuDeviceGetUuid", ordinal));
  facts.uuid = uuidOf(uuid);
  TRY(checkCu(driver, driver.cuDeviceTotalMem(&facts.memoryBytes, device), "cuDeviceTotalMem", ordinal));
  ASSIGN(const int major, attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  ASSIGN(const int minor, attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  facts.computeCapability = major * 10 + minor;
  facts.nvmlIndex = driver.softGpu ? ordinalOfAll(ordinal) : Nvml::instance().indexOf(facts.busIdText);
  ASSIGN(facts.multiprocessors, attribute(driver, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  if (hasVmmCalls(driver)) {
    ASSIGN(const int vmm, attribute(driver, device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
    ASSIGN(const int posix, attribute(driver, device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED));
    facts.vmm = vmm != 0 && posix != 0;
  }
  return facts;
}

std::int64_t packBusId(const std::string& text) {
  std::uint64_t packed = 0;
  for (const char c : text) {
    if (c >= '0' && c <= '9') packed = packed * 16 + static_cast<std::uint64_t>(c - '0');
    if (c >= 'a' && c <= 'f') packed = packed * 16 + static_cast<std::uint64_t>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') packed = packed * 16 + static_cast<std::uint64_t>(c - 'A' + 10);
  }
  return static_cast<std::int64_t>(packed);
}

Result<DeviceIndex> DeviceIndex::read(const Driver& driver) {
  DeviceIndex index;
  ASSIGN(const int count, deviceCount(driver));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    CUuuid uuid{};
    TRY(checkCu(driver, driver.cuDeviceGet(&device, ordinal), "cuDeviceGet", ordinal));
    TRY(checkCu(driver, driver.cuDeviceGetUuid(&uuid, device), "cuDeviceGetUuid", ordinal));
    index.ordinals_.try_emplace(uuidOf(uuid), ordinal);
  }
  return index;
}

int DeviceIndex::ordinalOf(const std::array<std::uint8_t, 16>& uuid) const {
  const auto known = ordinals_.find(uuid);
  return known == ordinals_.end() ? -1 : known->second;
}

}  // namespace tutti::gpu
