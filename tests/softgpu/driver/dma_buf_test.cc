// Device memory as files that stand for dma-bufs (SOFTGPU_GDR=dmabuf).
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.h"
#include "softgpu/cuda_fixture.h"

namespace tutti::softgpu::test {
namespace {

constexpr std::size_t kPage = 4096;

class DmaBufs : public CudaTest {
 protected:
  static int attribute(CUdevice_attribute which) {
    int value = -1;
    EXPECT_CU(cuDeviceGetAttribute(&value, which, 0));
    return value;
  }
  static CUresult give(CUdeviceptr from, std::size_t bytes, tutti::Fd& file) {
    int fd = -1;
    const CUresult result = cuMemGetHandleForAddressRange(&fd, from, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    file = tutti::Fd(fd);
    return result;
  }
  static char* bytesAt(CUdeviceptr address) { return reinterpret_cast<char*>(address); }
};

TEST_F(DmaBufs, AreOfferedWithTheMemoryByItsAddress) {
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED), 1);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED), 1);
}

TEST_F(DmaBufs, ShowTheMemoryToWhoeverMapsThem) {
  CUdeviceptr memory = 0;
  EXPECT_CU(cuMemAlloc(&memory, 3 * kPage + 5));
  tutti::Fd file;
  EXPECT_CU(give(memory, 4 * kPage, file));
  auto* const seen = static_cast<char*>(::mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
  ASSERT_NE(seen, MAP_FAILED);
  std::strcpy(bytesAt(memory) + 2 * kPage, "of the device");
  EXPECT_STREQ(seen + 2 * kPage, "of the device");
  std::strcpy(seen, "of the NIC");
  EXPECT_STREQ(bytesAt(memory), "of the NIC");
  EXPECT_CU(cuMemFree(memory));
  EXPECT_STREQ(seen + 2 * kPage, "of the device") << "it lasts as long as somebody has it";
  ::munmap(seen, 4 * kPage);
}

TEST_F(DmaBufs, AreWholePagesFromTheBeginningOfAnAllocation) {
  CUdeviceptr memory = 0;
  EXPECT_CU(cuMemAlloc(&memory, 4 * kPage));
  tutti::Fd file;
  EXPECT_CU(give(memory, kPage, file));
  EXPECT_CU_ERROR(give(memory + kPage, kPage, file), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_CU_ERROR(give(memory, kPage + 1, file), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU_ERROR(give(memory + 8, kPage, file), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU_ERROR(give(memory, 5 * kPage, file), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU_ERROR(give(memory, 0, file), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFree(memory));
  EXPECT_CU_ERROR(give(memory, kPage, file), CUDA_ERROR_INVALID_VALUE) << "it is no memory any more";
}

TEST_F(DmaBufs, AreNoneOfHostMemory) {
  void* memory = nullptr;
  EXPECT_CU(cuMemHostAlloc(&memory, kPage, 0));
  tutti::Fd file;
  EXPECT_CU_ERROR(give(reinterpret_cast<CUdeviceptr>(memory), kPage, file), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFreeHost(memory));
}

}  // namespace
}  // namespace tutti::softgpu::test
