// Advice that changes nothing is taken, and checked.
#include <array>

#include "softgpu/cuda_fixture.h"

namespace tutti::softgpu::test {
namespace {

using Hints = CudaTest;

TEST_F(Hints, OfFunctionsAreTakenForFunctionsOnly) {
  const CUfunction function = kernel("Empty");
  EXPECT_CU(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_L1));
  EXPECT_CU_ERROR(cuFuncSetCacheConfig(nullptr, CU_FUNC_CACHE_PREFER_L1), CUDA_ERROR_INVALID_HANDLE);
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
  EXPECT_CU(cuFuncIsLoaded(&state, function));
  EXPECT_EQ(state, CU_FUNCTION_LOADING_STATE_LOADED);
}

TEST_F(Hints, OfMemoryAreTakenForKnownMemoryOnly) {
  const CUdeviceptr memory = address(words());
  const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  EXPECT_CU(cuMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here));
  EXPECT_CU(cuMemPrefetchAsync(memory, 4096, here, 0, stream_));
  int local = 0;
  EXPECT_CU_ERROR(cuMemAdvise(address(&local), sizeof local, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here),
                  CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Hints, ThereAreNoPrivateTables) {
  const CUuuid id{};
  const void* table = &id;
  EXPECT_CU_ERROR(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(table, nullptr);
}

TEST_F(Hints, TheLogCallsNobody) {
  CUlogsCallbackHandle handle = nullptr;
  EXPECT_CU(cuLogsRegisterCallback([](void*, CUlogLevel, char*, size_t) {}, nullptr, &handle));
  EXPECT_CU(cuLogsUnregisterCallback(handle));
}

TEST_F(Hints, ADevicesPoolIsFoundByItsPlace) {
  CUmemLocation place{CU_MEM_LOCATION_TYPE_DEVICE, 1};
  CUmemoryPool byPlace = nullptr;
  CUmemoryPool byDevice = nullptr;
  EXPECT_CU(cuMemGetMemPool(&byPlace, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_CU(cuDeviceGetMemPool(&byDevice, 1));
  EXPECT_EQ(byPlace, byDevice);
  EXPECT_CU(cuMemSetMemPool(&place, CU_MEM_ALLOCATION_TYPE_PINNED, byPlace));
  place.type = CU_MEM_LOCATION_TYPE_HOST;
  EXPECT_CU_ERROR(cuMemSetMemPool(&place, CU_MEM_ALLOCATION_TYPE_PINNED, byDevice), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_CU_ERROR(cuMemGetMemPool(&byPlace, &place, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace
}  // namespace tutti::softgpu::test
