// Tests with GPU code: two devices, a stream, a toy image.
#pragma once

#include <dlfcn.h>

#include <cstdlib>

#include "softgpu/cuda_fixture.h"
#include "softgpu/toy_code.h"

namespace tutti::softgpu::test {

struct Size {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

class CodeTest : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    EXPECT_CU(cuModuleLoadData(&code_, kToyImage));
  }
  void TearDown() override {
    if (code_ != nullptr) {
      EXPECT_CU(cuModuleUnload(code_));
    }
    CudaTest::TearDown();
  }
  CUfunction function(const char* name) {
    CUfunction result = nullptr;
    EXPECT_CU(cuModuleGetFunction(&result, code_, name));
    return result;
  }
  /// Of a kernel with one parameter.
  CUresult launchOut(CUfunction kernel, Size grid, Size block, std::uint32_t* out, unsigned shared = 0) {
    void* params[] = {&out};
    return cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream_, params, nullptr);
  }
  CUresult launchOut(const char* kernel, Size grid, Size block, std::uint32_t* out, unsigned shared = 0) {
    return launchOut(function(kernel), grid, block, out, shared);
  }
  /// What the library that stands for the translator tells.
  static int ask(const char* name) {
    void* library = ::dlopen(std::getenv("SOFTGPU_PTX_LIBRARY"), RTLD_NOW);
    auto* question = reinterpret_cast<int (*)()>(::dlsym(library, name));
    return question == nullptr ? -1 : question();
  }

  CUmodule code_ = nullptr;
};

}  // namespace tutti::softgpu::test
