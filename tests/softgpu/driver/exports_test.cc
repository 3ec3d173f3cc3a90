// Every function of the driver's interface can be linked and looked up.
#include <dlfcn.h>

#include <fstream>
#include <string>

#include "softgpu/cuda_fixture.h"

namespace tutti::softgpu::test {
namespace {

TEST(DriverExports, EveryFunctionOfTheInterfaceIsThere) {
  std::ifstream names(SOFTGPU_DRIVER_NAMES);
  std::string name;
  int seen = 0;
  while (std::getline(names, name)) {
    if (name.starts_with("#")) continue;
    EXPECT_NE(dlsym(RTLD_DEFAULT, name.c_str()), nullptr) << name;
    ++seen;
  }
  EXPECT_GE(seen, 499);
}

/// Looked up by programs around collectives, which take a missing function for an old driver.
TEST(DriverExports, WhatProgramsLookUpIsFound) {
  for (const char* name : {"cuGetExportTable", "cuFuncSetCacheConfig", "cuMemGetMemPool", "cuTensorMapEncodeTiled",
                           "cuLinkCreate", "cuLinkAddData", "cuLinkComplete", "cuGreenCtxCreate", "cuCtxFromGreenCtx",
                           "cuDeviceGetDevResource", "cuDevResourceGenerateDesc", "cuDevSmResourceSplitByCount",
                           "cuLogsRegisterCallback", "cuLogsUnregisterCallback", "cuMulticastCreate"}) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status{};
    EXPECT_CU(cuGetProcAddress_v2(name, &function, 13000, 0, &status));
    EXPECT_NE(function, nullptr) << name;
  }
}

TEST_F(CudaTest, WhatIsNotSupportedSaysSo) {
  CUtensorMap map{};
  EXPECT_CU_ERROR(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, nullptr, nullptr, nullptr, nullptr,
                                         nullptr, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                         CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                  CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace
}  // namespace tutti::softgpu::test
