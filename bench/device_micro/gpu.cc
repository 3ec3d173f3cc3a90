#include "bench/device_micro/gpu.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace micro {

namespace {

using Clock = std::chrono::steady_clock;

const char* remedyFor(CUresult result) {
  switch (result) {
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
      return "no such GPU is visible: look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use softgpu-run";
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "the libcuda.so.1 that was found is not that of the installed driver: look at LD_LIBRARY_PATH";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "build with -Dgpu_archs that has this GPU's sm_XX, or a ptx_XX that it and its driver know";
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "about 1.5 GiB of device memory must be free; --quick needs little";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
      return "a kernel of this program is wrong: run compute-sanitizer with --only and the item";
    case CUDA_ERROR_NOT_SUPPORTED:
      return "leave the item out with --only";
    default:
      return "see the driver's log (dmesg), and run again with --only to find the item";
  }
}

}  // namespace

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  const char* text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  throw std::runtime_error(std::string(call) + " failed: " + (name != nullptr ? name : "unknown error") + " (" +
                           (text != nullptr ? text : "no description") + "). What may help: " + remedyFor(result));
}

Memory::Memory(Place place, std::size_t bytes) : bytes_(bytes) {
  if (place == Place::Device) {
    CU_CHECK(cuMemAlloc(&address_, bytes));
  } else {
    CU_CHECK(cuMemHostAlloc(&host_, bytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
    CU_CHECK(cuMemHostGetDevicePointer(&address_, host_, 0));
  }
  clear();
}

Memory::~Memory() {
  host_ != nullptr ? cuMemFreeHost(host_) : cuMemFree(address_);
}

void Memory::clear(std::size_t bytes) {
  CU_CHECK(cuMemsetD8(address_, 0, bytes));
  CU_CHECK(cuCtxSynchronize());
}

void Memory::copyTo(const void* from, std::size_t bytes, std::size_t offset) {
  CU_CHECK(cuMemcpyHtoD(address_ + offset, from, bytes));
  CU_CHECK(cuCtxSynchronize());  // the call may return before the bytes are there
}

void Memory::copyFrom(void* to, std::size_t bytes, std::size_t offset) const {
  CU_CHECK(cuMemcpyDtoH(to, address_ + offset, bytes));
}

void Memory::repeat(std::size_t bytes) {
  for (std::size_t done = bytes; done < bytes_; done += std::min(done, bytes_ - done))
    CU_CHECK(cuMemcpyDtoD(address_ + done, address_, std::min(done, bytes_ - done)));
  CU_CHECK(cuCtxSynchronize());
}

Gpu::Gpu(int ordinal, std::chrono::seconds patience) : patience_(patience) {
  CU_CHECK(cuInit(0));
  CU_CHECK(cuDriverGetVersion(&driver_));
  CU_CHECK(cuDeviceGet(&device_, ordinal));
  char name[128] = {};
  CU_CHECK(cuDeviceGetName(name, sizeof(name) - 1, device_));
  name_ = name;
  CU_CHECK(cuDevicePrimaryCtxRetain(&context_, device_));
  CU_CHECK(cuCtxSetCurrent(context_));
  CU_CHECK(cuModuleLoadData(&module_, embeddedKernels()));
  CU_CHECK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  CU_CHECK(cuEventCreate(&begin_, CU_EVENT_DEFAULT));
  CU_CHECK(cuEventCreate(&end_, CU_EVENT_DEFAULT));
}

Gpu::~Gpu() {
  cuEventDestroy(begin_);
  cuEventDestroy(end_);
  cuStreamDestroy(stream_);
  cuModuleUnload(module_);
  cuDevicePrimaryCtxRelease(device_);
}

CUfunction Gpu::kernel(const std::string& name) {
  CUfunction& function = kernels_[name];
  if (function == nullptr) CU_CHECK(cuModuleGetFunction(&function, module_, name.c_str()));
  return function;
}

double Gpu::runRaw(const std::string& name, const Shape& shape, void* params) {
  CUfunction function = kernel(name);
  if (shape.sharedBytes > 48u << 10) {
    CU_CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                static_cast<int>(shape.sharedBytes)));
  }
  void* arguments[] = {params};
  CU_CHECK(cuEventRecord(begin_, stream_));
  check(
      cuLaunchKernel(function, shape.blocks, 1, 1, shape.threads, 1, 1, shape.sharedBytes, stream_, arguments, nullptr),
      ("cuLaunchKernel of " + name).c_str());
  CU_CHECK(cuEventRecord(end_, stream_));
  try {
    finish();
  } catch (const Hang&) {
    throw Hang("kernel " + name + " did not end");
  } catch (const std::exception& error) {
    throw std::runtime_error("kernel " + name + ": " + error.what());
  }
  float milliseconds = 0;
  CU_CHECK(cuEventElapsedTime(&milliseconds, begin_, end_));
  return milliseconds * 1e3;
}

void Gpu::finish() {
  const auto begin = Clock::now();
  for (;;) {
    const CUresult state = cuStreamQuery(stream_);
    if (state == CUDA_SUCCESS) return;
    if (state != CUDA_ERROR_NOT_READY) CU_CHECK(state);
    const auto waited = Clock::now() - begin;
    if (waited > patience_) throw Hang("the stream did not end");
    if (waited > std::chrono::milliseconds(2)) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

int Gpu::attribute(CUdevice_attribute which) const {
  int value = 0;
  CU_CHECK(cuDeviceGetAttribute(&value, which, device_));
  return value;
}

}  // namespace micro
