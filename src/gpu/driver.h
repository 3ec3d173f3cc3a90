// The CUDA driver as one table of function pointers, found at run time: nothing of tutti links a CUDA library.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace tutti::simt {
struct HostKernelTable;
}

// The lists below are lists, not code:
// clang-format off
/// Calls that every supported driver (CUDA 12 and later, and the software GPU) has.
#define TUTTI_DRIVER_CALLS(X)                                                                                       \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString)                                             \
  X(cuDeviceGet) X(cuDeviceGetCount) X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceGetPCIBusId)              \
  X(cuDeviceGetUuid) X(cuDeviceTotalMem) X(cuDeviceCanAccessPeer)                                                   \
  X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease)                                                          \
  X(cuCtxGetCurrent) X(cuCtxGetDevice) X(cuCtxPushCurrent) X(cuCtxPopCurrent) X(cuCtxEnablePeerAccess)              \
  X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamQuery) X(cuStreamSynchronize) X(cuStreamWaitEvent)                 \
  X(cuThreadExchangeStreamCaptureMode) X(cuStreamGetCaptureInfo) X(cuStreamUpdateCaptureDependencies)               \
  X(cuGraphAddEventRecordNode) X(cuGraphAddEventWaitNode)                                                           \
  X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery)                                               \
  X(cuMemAlloc) X(cuMemFree) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemHostGetDevicePointer)                        \
  X(cuMemHostRegister) X(cuMemHostUnregister)                                                                       \
  X(cuMemGetAddressRange) X(cuPointerGetAttribute) X(cuMemsetD8Async)                                               \
  X(cuMemcpyAsync) X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync)                                                        \
  X(cuIpcGetMemHandle) X(cuIpcOpenMemHandle) X(cuIpcCloseMemHandle)                                                 \
  X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction) X(cuFuncGetAttribute)                                \
  X(cuLaunchKernel) X(cuLaunchHostFunc)

/// Calls that may be missing (null in the table): the caller checks, and has another way or a clear error.
#define TUTTI_DRIVER_OPTIONAL_CALLS(X)                                                                              \
  X(cuStreamGetId) X(cuEventRecordWithFlags) X(cuFuncSetAttribute) X(cuDeviceGetP2PAttribute)                       \
  X(cuMemGetAllocationGranularity) X(cuMemCreate) X(cuMemRelease) X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess)       \
  X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemRetainAllocationHandle)                                         \
  X(cuMemExportToShareableHandle) X(cuMemImportFromShareableHandle)                                                 \
  X(cuGraphRetainUserObject) X(cuUserObjectCreate) X(cuUserObjectRelease) X(cuMemGetHandleForAddressRange)         \
  X(cuEventElapsedTime) X(cuLaunchKernelEx)
// clang-format on

namespace tutti::gpu {

/// The table. Members carry the driver's own names; cuda.h's macros map them to the version of the entry point that
/// this file was compiled against (cuMemAlloc is cuMemAlloc_v2 everywhere), and exactly that version is looked up.
/// Read-only after loadDriver(); tests fill their own.
struct Driver {
// clang-format off
#define TUTTI_DRIVER_MEMBER(name) decltype(&::name) name = nullptr;
  TUTTI_DRIVER_CALLS(TUTTI_DRIVER_MEMBER)
  TUTTI_DRIVER_OPTIONAL_CALLS(TUTTI_DRIVER_MEMBER)
#undef TUTTI_DRIVER_MEMBER
  // clang-format on

  /// Set on the software GPU only: takes the place of cuModuleLoadData for kernels compiled for the host.
  int (*softgpuRegisterKernels)(const simt::HostKernelTable* table, void** module) = nullptr;
  /// The same: a range that holds all memory of a device, and a handle for it (softgpu/memory_window.h).
  int (*softgpuMemoryWindow)(int device, void** base, std::size_t* bytes, CUipcMemHandle* handle) = nullptr;
  /// The same: the machine that SOFTGPU_TOPO describes (softgpu/topology_text.h).
  int (*softgpuTopology)(const char** text, std::size_t* bytes, const char** path) = nullptr;
  /// The same: work for threads whose kernels wait (softgpu/idle_hook.h).
  int (*softgpuAddIdleHook)(int (*turn)(void* argument), void (*leave)(void* argument), void* argument,
                            std::uint64_t* ticket) = nullptr;
  int (*softgpuRemoveIdleHook)(std::uint64_t ticket) = nullptr;
  bool softGpu = false;
  int version = 0;  ///< cuDriverGetVersion: 13000 is CUDA 13.0
};

/// Opens libcuda.so.1, fills the table, calls cuInit and installs the log's device column. Does the work once per
/// process and keeps the outcome (a failure too, but its error is reported on every call). Thread-safe. Errors:
/// ncclUnhandledCudaError saying what is missing and what to do.
Result<const Driver*> loadDriver();

/// What a CUDA call was about, for the text of its error. Only `call` is needed.
struct CuCall {
  const char* call;        ///< "cuMemAlloc"
  int device = -1;         ///< ordinal, -1 where none is involved
  std::size_t bytes = 0;   ///< how much was asked for; named when memory ran out
  std::string about = {};  ///< "slots of rank 3", may be empty
};

/// Success, or ncclUnhandledCudaError with "Cuda failure N 'description'", the name of the error, the call, the device
/// and, where one is known, the remedy. One overload for the plain case, so that no string is built on success.
Status checkCu(const Driver& driver, CUresult result, const char* call, int device = -1);
Status checkCu(const Driver& driver, CUresult result, const CuCall& call);

/// "cuErrorName 'description'" for messages that embed a CUDA error in their own text.
std::string describeCu(const Driver& driver, CUresult result);

}  // namespace tutti::gpu
