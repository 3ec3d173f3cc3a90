#include <sys/resource.h>

#include "softgpu/cuda_fixture.h"

namespace tutti::softgpu::test {
namespace {

class Mappings : public CudaTest {};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which map what they like
TEST_F(Mappings, AreKnownUntilTheyAreGone) {
  constexpr std::size_t kSize = std::size_t{2} << 20;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  EXPECT_CU(cuMemCreate(&handle, kSize, &properties, 0));
  EXPECT_CU(cuMemAddressReserve(&at, kSize, 0, 0, 0));
  EXPECT_CU(cuMemMap(at, kSize, 0, handle, 0));

  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit nothing{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &nothing), 0);  // the system maps nothing more, not even over what is mapped
  const CUresult refused = cuMemUnmap(at, kSize);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_CU_ERROR(refused, CUDA_ERROR_UNMAP_FAILED);

  EXPECT_CU_ERROR(cuMemAddressFree(at, kSize), CUDA_ERROR_INVALID_VALUE) << "it is still mapped";
  EXPECT_CU(cuMemUnmap(at, kSize));
  EXPECT_CU(cuMemRelease(handle));
  EXPECT_CU(cuMemAddressFree(at, kSize));
}
#endif

}  // namespace
}  // namespace tutti::softgpu::test
