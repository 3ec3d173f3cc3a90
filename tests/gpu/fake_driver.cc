#include "gpu/fake_driver.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

// Every fake call is a lambda that first counts itself, and leaves if it was told to fail.
#define FAKE(name)           \
  FakeDriver& fake = self(); \
  if (const CUresult told = fake.begin(#name); told != CUDA_SUCCESS) return told

namespace tutti::test {
namespace {

FakeDriver* active = nullptr;

std::size_t numberOf(const void* handle) {
  return reinterpret_cast<std::size_t>(handle);
}

int ordinalOf(CUdevice device) {
  return device - FakeDriver::kFirstHandle;
}

bool known(CUdevice device) {
  return ordinalOf(device) >= 0 && ordinalOf(device) < FakeDriver::kDevices;
}

}  // namespace

FakeDriver::FakeDriver() {
  active = this;
  fillDevices();
  fillContexts();
  fillObjects();
  fillMemory();
  fillVmm();
  fillModules();
}

FakeDriver::~FakeDriver() {
  active = nullptr;
}

FakeDriver& FakeDriver::self() {
  return *active;
}

CUresult FakeDriver::begin(const char* call) {
  const int count = ++calls_[call];
  const auto told = failures_.find(call);
  return told != failures_.end() && told->second.at == count ? told->second.code : CUDA_SUCCESS;
}

CUresult FakeDriver::drop(const char* kind, std::size_t handle) {
  auto& handles = live_[kind];
  const auto found = handles.find(handle);
  if (found == handles.end()) return CUDA_ERROR_INVALID_VALUE;
  handles.erase(found);
  return CUDA_SUCCESS;
}

std::string FakeDriver::leaks() const {
  std::string text;
  for (const auto& [kind, handles] : live_) {
    if (!handles.empty()) text += (text.empty() ? "" : ", ") + kind + " " + std::to_string(handles.size());
  }
  return text;
}

void FakeDriver::fillDevices() {
  driver_.cuGetErrorName = [](CUresult code, const char** text) {
    *text = code == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
  };
  driver_.cuGetErrorString = [](CUresult code, const char** text) {
    *text = code == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "as the test wished";
    return CUDA_SUCCESS;
  };
  driver_.cuDeviceGetCount = [](int* count) {
    FAKE(cuDeviceGetCount);
    *count = kDevices;
    return CUDA_SUCCESS;
  };
  driver_.cuDeviceGet = [](CUdevice* device, int ordinal) {
    FAKE(cuDeviceGet);
    if (ordinal < 0 || ordinal >= kDevices) return CUDA_ERROR_INVALID_DEVICE;
    *device = kFirstHandle + ordinal;
    return CUDA_SUCCESS;
  };
  driver_.cuDeviceGetName = [](char* text, int bytes, CUdevice) {
    FAKE(cuDeviceGetName);
    std::strncpy(text, "Fake", static_cast<std::size_t>(bytes));
    return CUDA_SUCCESS;
  };
  driver_.cuDeviceGetPCIBusId = [](char* text, int bytes, CUdevice device) {
    FAKE(cuDeviceGetPCIBusId);
    std::strncpy(text, ordinalOf(device) == 0 ? "0000:1B:00.0" : "0000:C3:00.0", static_cast<std::size_t>(bytes));
    return CUDA_SUCCESS;
  };
  driver_.cuDeviceGetUuid = [](CUuuid* uuid, CUdevice device) {
    FAKE(cuDeviceGetUuid);
    std::memset(uuid->bytes, ordinalOf(device) + 1, sizeof(uuid->bytes));
    return CUDA_SUCCESS;
  };
  driver_.cuDeviceTotalMem = [](std::size_t* bytes, CUdevice) {
    FAKE(cuDeviceTotalMem);
    *bytes = std::size_t{1} << 30;
    return CUDA_SUCCESS;
  };
  driver_.cuDeviceGetAttribute = [](int* value, CUdevice_attribute which, CUdevice device) {
    FAKE(cuDeviceGetAttribute);
    if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
    *value = 1;
    if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) *value = 9;
    if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) *value = 0;
    if (which == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) *value = fake.vmmSupported ? 1 : 0;
    return CUDA_SUCCESS;
  };
  driver_.cuDeviceCanAccessPeer = [](int* can, CUdevice, CUdevice) {
    FAKE(cuDeviceCanAccessPeer);
    *can = fake.peerAccess ? 1 : 0;
    return CUDA_SUCCESS;
  };
}

void FakeDriver::fillContexts() {
  driver_.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
    FAKE(cuDevicePrimaryCtxRetain);
    *context = fake.contextOf(ordinalOf(device));
    fake.live_["cuDevicePrimaryCtxRetain"].insert(static_cast<std::size_t>(device));
    return CUDA_SUCCESS;
  };
  driver_.cuDevicePrimaryCtxRelease = [](CUdevice device) {
    FAKE(cuDevicePrimaryCtxRelease);
    return fake.drop("cuDevicePrimaryCtxRetain", static_cast<std::size_t>(device));
  };
  driver_.cuCtxGetCurrent = [](CUcontext* context) {
    FAKE(cuCtxGetCurrent);
    *context = fake.current();
    return CUDA_SUCCESS;
  };
  driver_.cuCtxGetDevice = [](CUdevice* device) {
    FAKE(cuCtxGetDevice);
    for (int i = 0; i < kDevices; ++i) {
      if (fake.current() == fake.contextOf(i)) *device = kFirstHandle + i;
    }
    return fake.stack_.empty() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
  };
  driver_.cuCtxPushCurrent = [](CUcontext context) {
    FAKE(cuCtxPushCurrent);
    fake.stack_.push_back(context);
    return CUDA_SUCCESS;
  };
  driver_.cuCtxPopCurrent = [](CUcontext* context) {
    FAKE(cuCtxPopCurrent);
    if (fake.stack_.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    *context = fake.stack_.back();
    fake.stack_.pop_back();
    return CUDA_SUCCESS;
  };
  driver_.cuCtxEnablePeerAccess = [](CUcontext, unsigned) {
    FAKE(cuCtxEnablePeerAccess);
    return CUDA_SUCCESS;
  };
  driver_.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode* mode) {
    FAKE(cuThreadExchangeStreamCaptureMode);
    std::swap(*mode, fake.mode_);
    return CUDA_SUCCESS;
  };
}

void FakeDriver::fillObjects() {
  driver_.cuStreamCreate = [](CUstream* stream, unsigned) {
    FAKE(cuStreamCreate);
    *stream = fake.make<CUstream>("cuStreamCreate");
    return CUDA_SUCCESS;
  };
  driver_.cuStreamDestroy = [](CUstream stream) {
    FAKE(cuStreamDestroy);
    return fake.drop("cuStreamCreate", numberOf(stream));
  };
  driver_.cuStreamQuery = [](CUstream) {
    FAKE(cuStreamQuery);
    return fake.streamState;
  };
  driver_.cuStreamSynchronize = [](CUstream) {
    FAKE(cuStreamSynchronize);
    return CUDA_SUCCESS;
  };
  driver_.cuStreamWaitEvent = [](CUstream, CUevent, unsigned) {
    FAKE(cuStreamWaitEvent);
    return CUDA_SUCCESS;
  };
  driver_.cuStreamGetId = [](CUstream, unsigned long long* id) {
    FAKE(cuStreamGetId);
    *id = 1;
    return CUDA_SUCCESS;
  };
#if CUDA_VERSION >= 13000
  driver_.cuStreamGetCaptureInfo = [](CUstream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                                      const CUgraphNode**, const CUgraphEdgeData**, std::size_t*) {
#else
  driver_.cuStreamGetCaptureInfo = [](CUstream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                                      const CUgraphNode**, std::size_t*) {
#endif
    FAKE(cuStreamGetCaptureInfo);
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  driver_.cuEventCreate = [](CUevent* event, unsigned) {
    FAKE(cuEventCreate);
    *event = fake.make<CUevent>("cuEventCreate");
    return CUDA_SUCCESS;
  };
  driver_.cuEventDestroy = [](CUevent event) {
    FAKE(cuEventDestroy);
    return fake.drop("cuEventCreate", numberOf(event));
  };
  driver_.cuEventRecord = [](CUevent, CUstream) {
    FAKE(cuEventRecord);
    return CUDA_SUCCESS;
  };
  driver_.cuEventQuery = [](CUevent) {
    FAKE(cuEventQuery);
    return fake.streamState;
  };
}

void FakeDriver::fillMemory() {
  driver_.cuMemAlloc = [](CUdeviceptr* address, std::size_t) {
    FAKE(cuMemAlloc);
    *address = reinterpret_cast<CUdeviceptr>(fake.make<void*>("cuMemAlloc"));
    return CUDA_SUCCESS;
  };
  driver_.cuMemFree = [](CUdeviceptr address) {
    FAKE(cuMemFree);
    return fake.drop("cuMemAlloc", static_cast<std::size_t>(address));
  };
  driver_.cuMemHostAlloc = [](void** host, std::size_t bytes, unsigned) {
    FAKE(cuMemHostAlloc);
    *host = std::malloc(bytes);
    fake.live_["cuMemHostAlloc"].insert(numberOf(*host));
    return CUDA_SUCCESS;
  };
  driver_.cuMemFreeHost = [](void* host) {
    FAKE(cuMemFreeHost);
    const std::size_t handle = numberOf(host);
    std::free(host);
    return fake.drop("cuMemHostAlloc", handle);
  };
  driver_.cuMemHostRegister = [](void* host, std::size_t, unsigned) {
    FAKE(cuMemHostRegister);
    fake.live_["cuMemHostRegister"].insert(numberOf(host));
    return CUDA_SUCCESS;
  };
  driver_.cuMemHostUnregister = [](void* host) {
    FAKE(cuMemHostUnregister);
    return fake.drop("cuMemHostRegister", numberOf(host));
  };
  driver_.cuMemHostGetDevicePointer = [](CUdeviceptr* address, void* host, unsigned) {
    FAKE(cuMemHostGetDevicePointer);
    *address = numberOf(host);
    return CUDA_SUCCESS;
  };
  driver_.cuMemsetD8Async = [](CUdeviceptr, unsigned char, std::size_t, CUstream) {
    FAKE(cuMemsetD8Async);
    return CUDA_SUCCESS;
  };
  driver_.cuMemcpyHtoDAsync = [](CUdeviceptr, const void*, std::size_t, CUstream) {
    FAKE(cuMemcpyHtoDAsync);
    return CUDA_SUCCESS;
  };
  driver_.cuMemcpyDtoHAsync = [](void*, CUdeviceptr, std::size_t, CUstream) {
    FAKE(cuMemcpyDtoHAsync);
    return CUDA_SUCCESS;
  };
  driver_.cuPointerGetAttribute = [](void* data, CUpointer_attribute, CUdeviceptr) {
    FAKE(cuPointerGetAttribute);
    if (!fake.knowsPointers) return CUDA_ERROR_INVALID_VALUE;
    *static_cast<int*>(data) = 1;
    return CUDA_SUCCESS;
  };
  driver_.cuIpcGetMemHandle = [](CUipcMemHandle*, CUdeviceptr) {
    FAKE(cuIpcGetMemHandle);
    return CUDA_SUCCESS;
  };
  driver_.cuIpcOpenMemHandle = [](CUdeviceptr* address, CUipcMemHandle, unsigned) {
    FAKE(cuIpcOpenMemHandle);
    *address = reinterpret_cast<CUdeviceptr>(fake.make<void*>("cuIpcOpenMemHandle"));
    return CUDA_SUCCESS;
  };
  driver_.cuIpcCloseMemHandle = [](CUdeviceptr address) {
    FAKE(cuIpcCloseMemHandle);
    return fake.drop("cuIpcOpenMemHandle", static_cast<std::size_t>(address));
  };
}

void FakeDriver::fillVmm() {
  driver_.cuMemGetAllocationGranularity = [](std::size_t* grain, const CUmemAllocationProp*,
                                             CUmemAllocationGranularity_flags) {
    FAKE(cuMemGetAllocationGranularity);
    *grain = std::size_t{2} << 20;
    return CUDA_SUCCESS;
  };
  driver_.cuMemCreate = [](CUmemGenericAllocationHandle* handle, std::size_t bytes, const CUmemAllocationProp*,
                           unsigned long long) {
    FAKE(cuMemCreate);
    fake.createdBytes = bytes;
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(fake.make<void*>("cuMemCreate"));
    return CUDA_SUCCESS;
  };
  driver_.cuMemRelease = [](CUmemGenericAllocationHandle handle) {
    FAKE(cuMemRelease);
    return fake.drop("cuMemCreate", static_cast<std::size_t>(handle));
  };
  driver_.cuMemRetainAllocationHandle = [](CUmemGenericAllocationHandle* handle, void* address) {
    FAKE(cuMemRetainAllocationHandle);
    if (fake.live_["cuMemMap"].count(numberOf(address)) == 0) return CUDA_ERROR_INVALID_VALUE;
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(fake.make<void*>("cuMemCreate"));
    return CUDA_SUCCESS;
  };
  driver_.cuMemExportToShareableHandle = [](void* fd, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                                            unsigned long long) {
    FAKE(cuMemExportToShareableHandle);
    *static_cast<int*>(fd) = ::memfd_create("exported", 0);
    return CUDA_SUCCESS;
  };
  driver_.cuMemImportFromShareableHandle = [](CUmemGenericAllocationHandle* handle, void*, CUmemAllocationHandleType) {
    FAKE(cuMemImportFromShareableHandle);
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(fake.make<void*>("cuMemCreate"));
    return CUDA_SUCCESS;
  };
  driver_.cuMemAddressReserve = [](CUdeviceptr* address, std::size_t bytes, std::size_t, CUdeviceptr,
                                   unsigned long long) {
    FAKE(cuMemAddressReserve);
    fake.mappedBytes = bytes;
    *address = reinterpret_cast<CUdeviceptr>(fake.make<void*>("cuMemAddressReserve"));
    return CUDA_SUCCESS;
  };
  driver_.cuMemAddressFree = [](CUdeviceptr address, std::size_t) {
    FAKE(cuMemAddressFree);
    return fake.drop("cuMemAddressReserve", static_cast<std::size_t>(address));
  };
  driver_.cuMemMap = [](CUdeviceptr address, std::size_t, std::size_t, CUmemGenericAllocationHandle,
                        unsigned long long) {
    FAKE(cuMemMap);
    fake.live_["cuMemMap"].insert(static_cast<std::size_t>(address));
    return CUDA_SUCCESS;
  };
  driver_.cuMemUnmap = [](CUdeviceptr address, std::size_t) {
    FAKE(cuMemUnmap);
    return fake.drop("cuMemMap", static_cast<std::size_t>(address));
  };
  driver_.cuMemSetAccess = [](CUdeviceptr, std::size_t, const CUmemAccessDesc* readers, std::size_t count) {
    FAKE(cuMemSetAccess);
    fake.access.assign(readers, readers + count);
    return CUDA_SUCCESS;
  };
  driver_.cuMemGetAddressRange = [](CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
    FAKE(cuMemGetAddressRange);
    *base = address;
    *bytes = fake.mappedBytes;
    return CUDA_SUCCESS;
  };
}

void FakeDriver::fillModules() {
  driver_.cuModuleLoadData = [](CUmodule* module, const void*) {
    FAKE(cuModuleLoadData);
    *module = fake.make<CUmodule>("cuModuleLoadData");
    return CUDA_SUCCESS;
  };
  driver_.cuModuleUnload = [](CUmodule module) {
    FAKE(cuModuleUnload);
    return fake.drop("cuModuleLoadData", numberOf(module));
  };
  driver_.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char*) {
    FAKE(cuModuleGetFunction);
    *function = reinterpret_cast<CUfunction>(std::size_t{64});
    return CUDA_SUCCESS;
  };
  driver_.cuLaunchKernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              CUstream, void**, void**) {
    FAKE(cuLaunchKernel);
    return CUDA_SUCCESS;
  };
}

}  // namespace tutti::test
