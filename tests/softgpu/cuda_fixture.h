// What the software GPU's tests share: a context, kernels, and a check that names the error.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/simt/simt_host_abi.h"

namespace tutti::softgpu::test {

inline std::string nameOf(CUresult result) {
  const char* name = nullptr;
  return cuGetErrorName(result, &name) == CUDA_SUCCESS ? name : "unknown";
}

#define EXPECT_CU(call) EXPECT_EQ(tutti::softgpu::test::nameOf(call), "CUDA_SUCCESS")
#define EXPECT_CU_ERROR(call, error) EXPECT_EQ(tutti::softgpu::test::nameOf(call), #error)

inline CUdeviceptr address(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

/// What the test kernels are given.
struct KernelParams {
  std::uint32_t* out;
  std::uint32_t* flag;
  std::uint32_t count;
  std::uint32_t value;
};

const simt::HostKernelTable& testKernels();

/// Two devices, the first one current, and a stream.
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  /// 64 KiB of zeroed memory of the current device.
  std::uint32_t* words();
  CUfunction kernel(const char* name);
  CUresult launch(const char* name, unsigned blocks, unsigned threads, CUstream stream, KernelParams params);

  CUcontext contexts_[2] = {};
  CUstream stream_ = nullptr;
  CUmodule module_ = nullptr;
  std::vector<CUdeviceptr> memory_;
};

}  // namespace tutti::softgpu::test
