#include "gpu/dma_buf.h"

#include <unistd.h>

#include <string>

namespace tutti::gpu {

namespace {

bool has(const Driver& driver, CUdevice device, CUdevice_attribute attribute) {
  int supported = 0;
  return driver.cuDeviceGetAttribute(&supported, attribute, device) == CUDA_SUCCESS && supported != 0;
}

}  // namespace

bool reachedByNics(const Driver& driver, CUdevice device) {
  return has(driver, device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
}

bool exportsDmaBufs(const Driver& driver, CUdevice device) {
  return driver.cuMemGetHandleForAddressRange != nullptr && has(driver, device, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
}

bool exportsDmaBufs(const Device& device) {
  return exportsDmaBufs(device.driver(), device.handle());
}

Result<DmaBuf> dmaBufOf(const Device& device, void* memory, std::size_t bytes, std::string_view about) {
  const Driver& driver = device.driver();
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  const std::uint64_t offset = address % page;
  const std::size_t rounded = (offset + bytes + page - 1) / page * page;
  ASSIGN(const ContextGuard context, device.enter());
  int fd = -1;
  const CUresult result = driver.cuMemGetHandleForAddressRange == nullptr
                              ? CUDA_ERROR_NOT_SUPPORTED
                              : driver.cuMemGetHandleForAddressRange(&fd, address - offset, rounded,
                                                                     CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  TRY(checkCu(driver, result, CuCall{"cuMemGetHandleForAddressRange", device.ordinal(), rounded, std::string(about)}));
  return DmaBuf{Fd(fd), offset};
}

}  // namespace tutti::gpu
