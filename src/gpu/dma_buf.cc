#include "gpu/dma_buf.h"

#include <unistd.h>

#include <string>

namespace tutti::gpu {

bool exportsDmaBufs(const Device& device) {
  const Driver& driver = device.driver();
  if (driver.cuMemGetHandleForAddressRange == nullptr) return false;
  int supported = 0;
  const CUresult asked =
      driver.cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, device.handle());
  return asked == CUDA_SUCCESS && supported != 0;
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
