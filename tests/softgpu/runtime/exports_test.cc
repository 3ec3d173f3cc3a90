// Every symbol of the toolkit's libcudart.so.13 is there under the one version node.
#include <dlfcn.h>

#include <fstream>
#include <string>

#include "softgpu/runtime/support.h"

namespace tutti::softgpu {
namespace {

/// Called by programs around collectives (not only by the vendor's own library): none may be a refusal.
constexpr const char* kUsedByPrograms[] = {
    "cudaDeviceCanAccessPeer",
    "cudaDeviceEnablePeerAccess",
    "cudaDeviceGetAttribute",
    "cudaDeviceGetPCIBusId",
    "cudaDeviceGetStreamPriorityRange",
    "cudaDeviceReset",
    "cudaDeviceSetLimit",
    "cudaDeviceSynchronize",
    "cudaDriverGetVersion",
    "cudaGetDevice",
    "cudaGetDeviceCount",
    "cudaGetDeviceProperties",
    "cudaRuntimeGetVersion",
    "cudaSetDevice",
    "cudaFree",
    "cudaFreeAsync",
    "cudaFreeHost",
    "cudaHostAlloc",
    "cudaHostGetDevicePointer",
    "cudaHostRegister",
    "cudaHostUnregister",
    "cudaMalloc",
    "cudaMallocAsync",
    "cudaMallocFromPoolAsync",
    "cudaMallocHost",
    "cudaMallocManaged",
    "cudaMemGetInfo",
    "cudaMemPoolCreate",
    "cudaMemPoolDestroy",
    "cudaMemPoolSetAttribute",
    "cudaMemcpy",
    "cudaMemcpyAsync",
    "cudaMemcpyBatchAsync",
    "cudaMemcpyPeerAsync",
    "cudaMemset",
    "cudaMemset2D",
    "cudaMemsetAsync",
    "cudaIpcCloseMemHandle",
    "cudaIpcGetEventHandle",
    "cudaIpcGetMemHandle",
    "cudaIpcOpenEventHandle",
    "cudaIpcOpenMemHandle",
    "cudaLaunchHostFunc",
    "cudaStreamCreate",
    "cudaStreamCreateWithFlags",
    "cudaStreamCreateWithPriority",
    "cudaStreamDestroy",
    "cudaStreamGetId",
    "cudaStreamQuery",
    "cudaStreamSynchronize",
    "cudaStreamWaitEvent",
    "cudaEventCreate",
    "cudaEventCreateWithFlags",
    "cudaEventDestroy",
    "cudaEventElapsedTime",
    "cudaEventQuery",
    "cudaEventRecord",
    "cudaEventSynchronize",
    "cudaGraphAddDependencies",
    "cudaGraphAddEventRecordNode",
    "cudaGraphAddMemcpyNode1D",
    "cudaGraphCreate",
    "cudaGraphDestroy",
    "cudaGraphExecDestroy",
    "cudaGraphExecMemcpyNodeSetParams1D",
    "cudaGraphGetNodes",
    "cudaGraphInstantiate",
    "cudaGraphInstantiateWithFlags",
    "cudaGraphLaunch",
    "cudaGraphRetainUserObject",
    "cudaStreamBeginCapture",
    "cudaStreamEndCapture",
    "cudaStreamGetCaptureInfo",
    "cudaStreamIsCapturing",
    "cudaStreamUpdateCaptureDependencies",
    "cudaThreadExchangeStreamCaptureMode",
    "cudaUserObjectCreate",
    "cudaPointerGetAttributes",
    "cudaGetErrorName",
    "cudaGetErrorString",
    "cudaGetLastError",
    "cudaPeekAtLastError",
    "cudaGetDriverEntryPoint",
    "cudaGetDriverEntryPointByVersion",
    "cudaFuncGetAttributes",
    "cudaFuncSetAttribute",
    "cudaGetFuncBySymbol",
    "cudaLaunchCooperativeKernel",
};

TEST(RuntimeExports, EverySymbolOfTheToolkitHasTheVersionNode) {
  std::ifstream names(SOFTGPU_EXPORTED_NAMES);
  std::string name;
  int seen = 0;
  while (std::getline(names, name)) {
    EXPECT_NE(dlvsym(RTLD_DEFAULT, name.c_str(), "libcudart.so.13"), nullptr) << name;
    ++seen;
  }
  EXPECT_EQ(seen, 452);
}

TEST(RuntimeExports, WhatProgramsCallIsThere) {
  for (const char* name : kUsedByPrograms) EXPECT_NE(dlvsym(RTLD_DEFAULT, name, "libcudart.so.13"), nullptr) << name;
}

TEST(RuntimeExports, AnotherVersionNodeIsNotThere) {
  EXPECT_EQ(dlvsym(RTLD_DEFAULT, "cudaMalloc", "libcudart.so.12"), nullptr);
}

TEST(RuntimeExports, AnUnsupportedCallSaysSoAndKeepsTheError) {
  cudaGetLastError();
  EXPECT_CUDA(cudaErrorNotSupported, cudaGraphDebugDotPrint(nullptr, "x", 0));
  EXPECT_CUDA(cudaErrorNotSupported, cudaGetLastError());
  EXPECT_CUDA(cudaSuccess, cudaGetLastError());
}

TEST(RuntimeErrors, NamesAndTextsAreTheKnownOnes) {
  EXPECT_STREQ("cudaSuccess", cudaGetErrorName(cudaSuccess));
  EXPECT_STREQ("no error", cudaGetErrorString(cudaSuccess));
  EXPECT_STREQ("cudaErrorHostMemoryAlreadyRegistered", cudaGetErrorName(cudaErrorHostMemoryAlreadyRegistered));
  EXPECT_STREQ("peer access is already enabled", cudaGetErrorString(cudaErrorPeerAccessAlreadyEnabled));
  EXPECT_STREQ("unknown error", cudaGetErrorString(cudaErrorUnknown));
  EXPECT_STREQ("unrecognized error code", cudaGetErrorName(static_cast<cudaError_t>(12345)));
  EXPECT_STREQ("unrecognized error code", cudaGetErrorString(static_cast<cudaError_t>(12345)));
}

}  // namespace
}  // namespace tutti::softgpu
