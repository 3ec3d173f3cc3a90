// Memory pools: what they count, which one is the current one, and what their end leaves.
#include <gtest/gtest.h>

#include <cstdint>

#include "softgpu/cuda_fixture.h"

namespace tutti::softgpu::test {
namespace {

class PoolTest : public CudaTest {
 protected:
  CUmemoryPool create(int device = 0) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    CUmemoryPool pool = nullptr;
    EXPECT_CU(cuMemPoolCreate(&pool, &properties));
    return pool;
  }
  CUmemoryPool defaultPool(int device = 0) {
    CUmemoryPool pool = nullptr;
    EXPECT_CU(cuDeviceGetDefaultMemPool(&pool, device));
    return pool;
  }
  std::uint64_t figure(CUmemoryPool pool, CUmemPool_attribute attribute) {
    cuuint64_t value = ~std::uint64_t{0};
    EXPECT_CU(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
  }
  CUdeviceptr allocateFrom(CUmemoryPool pool, std::size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_CU(cuMemAllocFromPoolAsync(&address, bytes, pool, nullptr));
    return address;
  }
  void freeNow(CUdeviceptr address) {
    EXPECT_CU(cuMemFreeAsync(address, nullptr));
    EXPECT_CU(cuStreamSynchronize(nullptr));
  }
};

TEST_F(PoolTest, CountsWhatIsInUseAndTheMostThatWas) {
  const CUmemoryPool pool = create();
  EXPECT_EQ(figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0U);
  const CUdeviceptr large = allocateFrom(pool, 3 << 20);
  const CUdeviceptr small = allocateFrom(pool, 1 << 20);
  for (const auto now : {CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT}) {
    EXPECT_EQ(figure(pool, now), std::uint64_t{4} << 20);
  }
  freeNow(large);
  EXPECT_EQ(figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), std::uint64_t{1} << 20);
  EXPECT_EQ(figure(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), std::uint64_t{4} << 20);
  EXPECT_EQ(figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), std::uint64_t{4} << 20);
  cuuint64_t zero = 0;
  EXPECT_CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  EXPECT_EQ(figure(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), std::uint64_t{1} << 20) << "it begins with what there is";
  EXPECT_EQ(figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), std::uint64_t{4} << 20);
  EXPECT_CU(cuMemFree(small));
  EXPECT_EQ(figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0U) << "freed by cuMemFree";
  EXPECT_CU(cuMemPoolDestroy(pool));
}

TEST_F(PoolTest, FiguresCannotBeSetButToBeginAnew) {
  const CUmemoryPool pool = create();
  cuuint64_t one = 1;
  cuuint64_t zero = 0;
  EXPECT_CU_ERROR(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU_ERROR(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU_ERROR(cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(99), &one), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemPoolDestroy(pool));
}

TEST_F(PoolTest, RemembersItsSettings) {
  const CUmemoryPool pool = create();
  int on = 0;
  EXPECT_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &on));
  EXPECT_EQ(on, 1);
  int off = 0;
  EXPECT_CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off));
  EXPECT_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &on));
  EXPECT_EQ(on, 0);
  EXPECT_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &on));
  EXPECT_EQ(on, 1);
  cuuint64_t threshold = 12345;
  EXPECT_CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  EXPECT_EQ(figure(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 12345U);
  EXPECT_CU(cuMemPoolDestroy(pool));
}

TEST_F(PoolTest, GraphsAllocateNothing) {
  cuuint64_t value = 1;
  EXPECT_CU(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &value));
  EXPECT_EQ(value, 0U);
  EXPECT_CU(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &value));
  EXPECT_CU_ERROR(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value),
                  CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuDeviceGraphMemTrim(0));
  EXPECT_CU_ERROR(cuDeviceGraphMemTrim(99), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(PoolTest, TheCurrentOneIsWhatAllocationsComeFrom) {
  const CUmemoryPool pool = create();
  EXPECT_CU(cuDeviceSetMemPool(0, pool));
  CUmemoryPool current = nullptr;
  EXPECT_CU(cuDeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, pool);
  const std::uint64_t before = figure(defaultPool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  CUdeviceptr address = 0;
  EXPECT_CU(cuMemAllocAsync(&address, 4096, nullptr));
  EXPECT_EQ(figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 4096U);
  EXPECT_EQ(figure(defaultPool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), before);
  CUmemoryPool origin = nullptr;
  EXPECT_CU(cuPointerGetAttribute(&origin, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address));
  EXPECT_EQ(origin, pool);
  EXPECT_CU_ERROR(cuDeviceSetMemPool(1, pool), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemPoolDestroy(pool));
  EXPECT_CU(cuDeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, defaultPool()) << "the current one has gone";
  EXPECT_CU(cuMemsetD8(address, 1, 4096));
  freeNow(address);
}

}  // namespace
}  // namespace tutti::softgpu::test
