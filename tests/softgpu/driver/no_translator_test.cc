// GPU code where libsoftgpu-ptx.so is not there: the error says what it takes.
#include <cuda.h>
#include <gtest/gtest.h>

#include "softgpu/cuda_fixture.h"

namespace tutti::softgpu::test {
namespace {

TEST_F(CudaTest, WithoutATranslatorCodeIsRefusedWithTheWayToGetOne) {
  CUmodule module = nullptr;
  char log[512] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  testing::internal::CaptureStderr();
  EXPECT_CU_ERROR(cuModuleLoadDataEx(&module, ".version 8.0", 2, options, values), CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
  const std::string told = testing::internal::GetCapturedStderr();
  for (const char* word : {"libsoftgpu-ptx.so", "LLVM", "/nowhere/"}) {
    EXPECT_NE(told.find(word), std::string::npos) << word << " in: " << told;
    EXPECT_NE(std::string(log).find(word), std::string::npos) << word;
  }
}

TEST_F(CudaTest, KernelsCompiledForTheHostNeedNone) {
  std::uint32_t* out = words();
  EXPECT_CU(launch("Barrier", 1, 96, stream_, {out, nullptr, 5, 0}));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(out[0], 10u);
}

}  // namespace
}  // namespace tutti::softgpu::test
