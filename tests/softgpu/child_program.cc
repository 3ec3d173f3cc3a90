// The other process of process_test.cc: 0 when all went as it should, else where it went wrong.
#include <cuda.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "softgpu/cuda_fixture.h"
#include "softgpu/memory_window.h"

namespace {

using tutti::softgpu::test::KernelParams;

template <class Handle>
Handle parse(const std::string& text) {
  Handle handle = {};
  for (std::size_t i = 0; i < sizeof(handle); ++i) {
    handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return handle;
}

int start() {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 10;
  return cuCtxSetCurrent(context) == CUDA_SUCCESS ? 0 : 11;
}

int memory(const std::string& text) {
  CUdeviceptr pointer = 0;
  if (cuIpcOpenMemHandle(&pointer, parse<CUipcMemHandle>(text), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS)
    return 40;
  auto* words = reinterpret_cast<std::uint32_t*>(pointer);
  if (words[3] != 77) return 41;
  words[4] = 78;
  return cuIpcCloseMemHandle(pointer) == CUDA_SUCCESS ? 0 : 42;
}

int twice(const std::string& text) {
  CUdeviceptr pointers[2] = {};
  for (CUdeviceptr& pointer : pointers) {
    if (cuIpcOpenMemHandle(&pointer, parse<CUipcMemHandle>(text), 0) != CUDA_SUCCESS) return 40;
  }
  if (pointers[0] != pointers[1]) return 41;
  if (cuIpcCloseMemHandle(pointers[0]) != CUDA_SUCCESS) return 42;
  auto* words = reinterpret_cast<std::uint32_t*>(pointers[1]);
  CUdeviceptr base = 0;
  std::size_t size = 0;
  if (words[3] != 77 || cuMemGetAddressRange(&base, &size, pointers[1] + 5) != CUDA_SUCCESS) return 43;
  words[4] = 79;
  if (cuIpcCloseMemHandle(pointers[1]) != CUDA_SUCCESS) return 44;
  if (cuMemGetAddressRange(&base, &size, pointers[1]) != CUDA_ERROR_NOT_FOUND) return 45;
  return cuIpcCloseMemHandle(pointers[1]) == CUDA_ERROR_INVALID_VALUE ? 0 : 46;
}

/// An allocation, the window that it is in, and how far from the window's begin.
int window(const std::string& allocation, const std::string& whole, const std::string& offset) {
  CUdeviceptr inside = 0;
  CUdeviceptr base = 0;
  if (cuIpcOpenMemHandle(&base, parse<CUipcMemHandle>(whole), 0) != CUDA_SUCCESS) return 40;
  if (cuIpcOpenMemHandle(&inside, parse<CUipcMemHandle>(allocation), 0) != CUDA_SUCCESS) return 41;
  if (inside != base + std::stoull(offset)) return 42;
  if (cuIpcCloseMemHandle(inside) != CUDA_SUCCESS) return 43;
  auto* words = reinterpret_cast<std::uint32_t*>(inside);
  if (words[3] != 77) return 44;
  words[4] = 80;
  return cuIpcCloseMemHandle(base) == CUDA_SUCCESS ? 0 : 45;
}

/// As where the system refuses large files.
int windowless() {
  void* base = nullptr;
  std::size_t bytes = 0;
  CUipcMemHandle handle;
  if (softgpuMemoryWindow(0, &base, &bytes, &handle) != CUDA_ERROR_NOT_SUPPORTED) return 40;
  CUdeviceptr pointers[2] = {};
  for (CUdeviceptr& pointer : pointers) {
    if (cuMemAlloc(&pointer, 1 << 20) != CUDA_SUCCESS) return 41;
    if (cuMemsetD8(pointer, 1, 1 << 20) != CUDA_SUCCESS) return 42;
  }
  if (cuIpcGetMemHandle(&handle, pointers[0]) != CUDA_SUCCESS) return 43;
  return cuMemFree(pointers[0]) == CUDA_SUCCESS && cuMemFree(pointers[1]) == CUDA_SUCCESS ? 0 : 44;
}

int event(const std::string& text) {
  CUevent event = nullptr;
  if (cuIpcOpenEventHandle(&event, parse<CUipcEventHandle>(text)) != CUDA_SUCCESS) return 20;
  if (cuEventRecord(event, nullptr) != CUDA_SUCCESS) return 21;
  return cuEventSynchronize(event) == CUDA_SUCCESS ? 0 : 22;
}

int failure() {
  CUdeviceptr pointer = 0;
  for (int i = 1; i <= 4; ++i) {
    const CUresult wanted = i == 3 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    if (cuMemAlloc(&pointer, 16) != wanted) return 20 + i;
  }
  return 0;
}

CUresult launch(const char* name, unsigned blocks, unsigned threads, KernelParams params) {
  void* module = nullptr;
  CUfunction function = nullptr;
  softgpuRegisterKernels(&tutti::softgpu::test::testKernels(), &module);
  if (cuModuleGetFunction(&function, static_cast<CUmodule>(module), name) != CUDA_SUCCESS) return CUDA_ERROR_NOT_FOUND;
  void* list[] = {&params};
  return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, nullptr, list, nullptr);
}

std::uint32_t* words() {
  CUdeviceptr pointer = 0;
  cuMemAlloc(&pointer, 4096);
  cuMemsetD8(pointer, 0, 4096);
  return reinterpret_cast<std::uint32_t*>(pointer);
}

int exitWithWork() {
  std::uint32_t* flags = words();
  return launch("Wait", 4, 64, {flags + 64, flags, 0, 1}) == CUDA_SUCCESS ? 0 : 20;
}

bool saysOnceThatItIsAChild(CUdeviceptr* pointer) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0 || ::dup2(pipe[1], STDERR_FILENO) < 0) return false;
  for (int i = 0; i < 2; ++i) {
    if (cuMemAlloc(pointer, 16) != CUDA_ERROR_NOT_INITIALIZED) return false;
  }
  std::array<char, 2048> said{};
  const ssize_t bytes = ::read(pipe[0], said.data(), said.size());
  const std::string text(said.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  const std::size_t first = text.find("child made by fork()");
  return first != std::string::npos && text.find("child made by fork()", first + 1) == std::string::npos;
}

int forkAndStart() {
  if (exitWithWork() != 0) return 20;
  const pid_t child = ::fork();
  if (child == 0) {
    CUdeviceptr pointer = 0;
    if (!saysOnceThatItIsAChild(&pointer)) ::_exit(30);
    if (start() != 0) ::_exit(31);
    ::_exit(cuMemAlloc(&pointer, 16) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS ? 0 : 32);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 33;
}

/// Uses the device when everything thread_local of the main thread is gone.
struct AtTheEnd {
  CUcontext wanted = nullptr;
  ~AtTheEnd() {
    CUcontext current = nullptr;
    CUdeviceptr pointer = 0;
    if (cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != wanted) ::_exit(40);
    if (cuCtxPushCurrent(wanted) != CUDA_SUCCESS || cuMemAlloc(&pointer, 16) != CUDA_SUCCESS) ::_exit(41);
    if (cuMemFree(pointer) != CUDA_SUCCESS || cuCtxPopCurrent(&current) != CUDA_SUCCESS) ::_exit(42);
    if (current != wanted) ::_exit(43);
  }
};

int staticObject() {
  static AtTheEnd object;
  if (cuCtxGetCurrent(&object.wanted) != CUDA_SUCCESS || object.wanted == nullptr) return 20;
  return cuCtxPushCurrent(object.wanted) == CUDA_SUCCESS ? 0 : 21;
}

int blocks() {
  std::uint32_t* out = words();
  if (launch("Barrier", 7, 64, {out, nullptr, 10, 0}) != CUDA_SUCCESS || cuCtxSynchronize() != CUDA_SUCCESS) return 20;
  return out[6 * 64 + 63] == 45 ? 0 : 21;
}

int devices(const std::string& wanted) {
  int count = 0;
  char id[32] = {};
  if (cuDeviceGetCount(&count) != CUDA_SUCCESS || std::to_string(count) != wanted) return 20;
  if (cuDeviceGetPCIBusId(id, sizeof(id), 0) != CUDA_SUCCESS) return 21;
  return std::string(id) == "0000:11:00.0" ? 0 : 22;
}

/// Capability of the first device, major * 10 + minor.
int capability(const std::string& wanted) {
  int major = 0;
  int minor = 0;
  if (cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) != CUDA_SUCCESS) return 20;
  if (cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0) != CUDA_SUCCESS) return 21;
  return std::to_string(major * 10 + minor) == wanted ? 0 : 22;
}

/// Whether NICs reach the memory of the first device, and whether it comes as dma-bufs: "10".
int reach(const std::string& wanted) {
  int address = 0;
  int dmaBufs = 0;
  if (cuDeviceGetAttribute(&address, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0) != CUDA_SUCCESS) return 20;
  if (cuDeviceGetAttribute(&dmaBufs, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0) != CUDA_SUCCESS) return 21;
  return std::to_string(address) + std::to_string(dmaBufs) == wanted ? 0 : 22;
}

/// The device has so many bytes, and no more are to be had.
int limit(const std::string& wanted) {
  std::size_t available = 0;
  std::size_t total = 0;
  CUdeviceptr pointer = 0;
  if (cuMemGetInfo(&available, &total) != CUDA_SUCCESS || std::to_string(total) != wanted) return 20;
  if (cuMemAlloc(&pointer, total + 1) != CUDA_ERROR_OUT_OF_MEMORY) return 21;
  return cuMemAlloc(&pointer, total / 2) == CUDA_SUCCESS ? 0 : 22;
}

/// Without a thread for the engine a call fails, and no later one waits for what it was to do; with one all is well.
int threadless() {
  CUdeviceptr pointer = 0;
  if (cuMemAlloc(&pointer, 64) != CUDA_SUCCESS) return 20;
  // Root may have as many threads as it likes.
  if (::geteuid() == 0 && ::setresuid(54321, 54321, 54321) != 0) return 21;
  ::alarm(60);
  rlimit before{};
  if (::getrlimit(RLIMIT_NPROC, &before) != 0) return 22;
  const rlimit none = {1, before.rlim_max};
  if (::setrlimit(RLIMIT_NPROC, &none) != 0) return 22;
  if (cuMemsetD8Async(pointer, 1, 64, nullptr) != CUDA_ERROR_OPERATING_SYSTEM) return 23;
  if (cuCtxSynchronize() != CUDA_SUCCESS) return 24;
  if (::setrlimit(RLIMIT_NPROC, &before) != 0) return 25;
  if (cuMemsetD8Async(pointer, 1, 64, nullptr) != CUDA_SUCCESS || cuCtxSynchronize() != CUDA_SUCCESS) return 26;
  return cuMemFree(pointer) == CUDA_SUCCESS ? 0 : 27;
}

/// Memory is a file, and so has the size that the limit of files allows.
int fileless() {
  CUdeviceptr pointer = 0;
  if (cuMemAlloc(&pointer, 1 << 20) != CUDA_ERROR_OUT_OF_MEMORY) return 23;
  if (cuMemAlloc(&pointer, 1 << 16) != CUDA_SUCCESS) return 24;
  return cuMemFree(pointer) == CUDA_SUCCESS ? 0 : 25;
}

}  // namespace

int main(int count, char** words) {
  const std::string mode = count > 1 ? words[1] : "";
  const std::string argument = count > 2 ? words[2] : "";
  if (mode == "windowless" || mode == "fileless") {
    const rlim_t bytes = mode == "windowless" ? 1 << 30 : 1 << 16;
    const rlimit smallFiles = {bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &smallFiles);
  }
  if (const int error = start(); error != 0) return error;
  if (mode == "memory") return memory(argument);
  if (mode == "twice") return twice(argument);
  if (mode == "window" && count > 4) return window(argument, words[3], words[4]);
  if (mode == "windowless") return windowless();
  if (mode == "fileless") return fileless();
  if (mode == "event") return event(argument);
  if (mode == "failure") return failure();
  if (mode == "exit") return exitWithWork();
  if (mode == "static") return staticObject();
  if (mode == "fork") return forkAndStart();
  if (mode == "blocks") return blocks();
  if (mode == "devices") return devices(argument);
  if (mode == "capability") return capability(argument);
  if (mode == "reach") return reach(argument);
  // Without exit handlers: a leak checker may not look at a process that has changed its user.
  if (mode == "threadless") ::_exit(threadless());
  if (mode == "limit") return limit(argument);
  return 2;
}
