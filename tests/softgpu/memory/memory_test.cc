#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "softgpu/cuda_fixture.h"
#include "softgpu/memory_window.h"

namespace tutti::softgpu::test {
namespace {

class Memory : public CudaTest {};

constexpr std::size_t kPiece = std::size_t{2} << 20;

CUmemAllocationProp onDevice(int device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

TEST_F(Memory, RangesAndFreeSpaceAreKnown) {
  std::size_t before = 0;
  std::size_t total = 0;
  EXPECT_CU(cuMemGetInfo(&before, &total));
  CUdeviceptr pointer = 0;
  EXPECT_CU(cuMemAlloc(&pointer, 1000));
  EXPECT_EQ(pointer % 512, 0u);
  CUdeviceptr base = 0;
  std::size_t size = 0;
  EXPECT_CU(cuMemGetAddressRange(&base, &size, pointer + 999));
  EXPECT_EQ(base, pointer);
  EXPECT_EQ(size, 1000u);
  std::size_t after = 0;
  EXPECT_CU(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before - after, 1000u);
  EXPECT_CU_ERROR(cuMemFree(pointer + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFree(pointer));
  EXPECT_CU_ERROR(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU_ERROR(cuMemGetAddressRange(&base, &size, pointer), CUDA_ERROR_NOT_FOUND);
  EXPECT_CU_ERROR(cuMemAlloc(&pointer, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Memory, SizesThatOverflowAreTooMuch) {
  std::size_t before = 0;
  std::size_t total = 0;
  EXPECT_CU(cuMemGetInfo(&before, &total));
  CUdeviceptr pointer = 0;
  std::size_t pitch = 0;
  constexpr std::size_t kMost = ~std::size_t{0};
  for (const std::size_t size : {kMost, kMost - 511, kMost / 2 + 1}) {
    EXPECT_CU_ERROR(cuMemAlloc(&pointer, size), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_CU_ERROR(cuMemAllocPitch(&pointer, &pitch, size, 1, 4), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_CU_ERROR(cuMemAllocPitch(&pointer, &pitch, 512, size, 4), CUDA_ERROR_OUT_OF_MEMORY);
  }
  // 512 * (2^55 + 1) is 512 in 64 bits.
  EXPECT_CU_ERROR(cuMemAllocPitch(&pointer, &pitch, 512, (std::size_t{1} << 55) + 1, 4), CUDA_ERROR_OUT_OF_MEMORY);
  std::size_t after = 0;
  EXPECT_CU(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
}

/// The descriptor of the memory of device 0, which has so many bytes; -1: there is none.
int windowDescriptor(std::size_t bytes) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    struct stat status = {};
    const int fd = std::stoi(entry.path().filename());
    std::error_code gone;  // the iterator's own
    const std::string name = std::filesystem::read_symlink(entry.path(), gone);
    const bool named = name.find("softgpu-device-0") != std::string::npos;
    if (named && ::fstat(fd, &status) == 0 && static_cast<std::size_t>(status.st_size) == bytes) return fd;
  }
  return -1;
}

/// Another file in place of a descriptor, as after a program has closed all that it found open; put back at the end.
class Replaced {
 public:
  Replaced(int fd, int by) : fd_(fd), kept_(::dup(fd)) { ::dup2(by, fd); }
  ~Replaced() {
    ::dup2(kept_, fd_);
    ::close(kept_);
  }

 private:
  const int fd_;
  const int kept_;
};

TEST_F(Memory, FileThatTookTheNumberOfItsDescriptorIsNeitherReadNorChanged) {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  void* base = nullptr;
  std::size_t windowBytes = 0;
  CUipcMemHandle handle = {};
  ASSERT_EQ(softgpuMemoryWindow(0, &base, &windowBytes, &handle), CUDA_SUCCESS);
  const int window = windowDescriptor(windowBytes);
  ASSERT_GE(window, 0);
  CUdeviceptr pointer = 0;
  EXPECT_CU(cuMemAlloc(&pointer, kBytes));
  EXPECT_CU(cuMemsetD8(pointer, 0x11, kBytes));

  const std::string before(pointer - address(base) + kBytes, 'x');
  const int other = ::memfd_create("other", MFD_CLOEXEC);
  ASSERT_EQ(::pwrite(other, before.data(), before.size(), 0), static_cast<ssize_t>(before.size()));
  {
    const Replaced replaced(window, other);
    EXPECT_CU_ERROR(cuIpcGetMemHandle(&handle, pointer), CUDA_ERROR_OPERATING_SYSTEM);
    EXPECT_CU(cuMemsetD8(pointer, 0, kBytes));
    std::string cleared(kBytes, 'x');
    EXPECT_CU(cuMemcpyDtoH(cleared.data(), pointer, kBytes));
    EXPECT_EQ(cleared, std::string(kBytes, '\0'));
    EXPECT_CU(cuMemFree(pointer));
  }
  std::string after(before.size(), '\0');
  EXPECT_EQ(::pread(other, after.data(), after.size(), 0), static_cast<ssize_t>(after.size()));
  EXPECT_TRUE(after == before);
  ::close(other);
}

/// Pages of a range that have memory behind them.
std::size_t pagesInUse(CUdeviceptr begin, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident(bytes / page);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(begin), bytes, resident.data()), 0);
  return static_cast<std::size_t>(std::count_if(resident.begin(), resident.end(), [](auto r) { return (r & 1) != 0; }));
}

TEST_F(Memory, ZerosTakeNoMemoryWhereNothingWasWritten) {
  constexpr std::size_t kBytes = 8 * kPiece;
  CUdeviceptr pointer = 0;
  EXPECT_CU(cuMemAlloc(&pointer, kBytes));
  EXPECT_CU(cuMemsetD8(pointer, 0, kBytes));
  EXPECT_CU(cuMemsetD32(pointer + 4, 0, kBytes / 4 - 1));
  EXPECT_EQ(pagesInUse(pointer, kBytes), 0U);
  EXPECT_CU(cuMemFree(pointer));
}

TEST_F(Memory, ZerosOverwriteWhatWasWritten) {
  constexpr std::size_t kBytes = 2 * kPiece;
  CUdeviceptr pointer = 0;
  EXPECT_CU(cuMemAlloc(&pointer, kBytes));
  auto* const data = reinterpret_cast<unsigned char*>(pointer);
  const std::vector<std::size_t> places{0, 1, 4095, 4096, 300000, kPiece - 1, kPiece, kBytes - 4097, kBytes - 1};
  for (const std::size_t skipped : {std::size_t{0}, std::size_t{1}, std::size_t{5000}}) {
    for (const std::size_t at : places) data[at] = 7;
    EXPECT_CU(cuMemsetD8(pointer + skipped, 0, kBytes - 2 * skipped));
    for (const std::size_t at : places) {
      EXPECT_EQ(data[at], at < skipped || at >= kBytes - skipped ? 7 : 0) << at << " without " << skipped;
    }
  }
  EXPECT_CU(cuMemsetD8(pointer, 0xab, kBytes));
  EXPECT_CU(cuMemsetD8(pointer, 0, kBytes));
  EXPECT_EQ(std::count(data, data + kBytes, 0), static_cast<std::ptrdiff_t>(kBytes));
  EXPECT_CU(cuMemFree(pointer));
}

TEST_F(Memory, ZerosReachHostMemoryToo) {
  void* host = nullptr;
  EXPECT_CU(cuMemHostAlloc(&host, kPiece, CU_MEMHOSTALLOC_DEVICEMAP));
  std::memset(host, 7, kPiece);
  EXPECT_CU(cuMemsetD8(address(host) + 1, 0, kPiece - 2));
  const auto* const data = static_cast<const unsigned char*>(host);
  EXPECT_EQ(std::count(data, data + kPiece, 0), static_cast<std::ptrdiff_t>(kPiece) - 2);
  EXPECT_CU(cuMemFreeHost(host));
}

TEST_F(Memory, PointersTellWhatTheyAre) {
  int local = 0;
  void* host = nullptr;
  EXPECT_CU(cuMemHostAlloc(&host, 64, CU_MEMHOSTALLOC_DEVICEMAP));
  unsigned type = 0;
  EXPECT_CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(host)));
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_HOST});
  EXPECT_CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(words())));
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_DEVICE});
  EXPECT_CU_ERROR(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&local)),
                  CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFreeHost(host));
}

struct Window {
  char* base = nullptr;
  std::size_t bytes = 0;
  CUipcMemHandle handle = {};
};

Window windowOf(int device) {
  Window window;
  void* base = nullptr;
  EXPECT_CU(static_cast<CUresult>(softgpuMemoryWindow(device, &base, &window.bytes, &window.handle)));
  window.base = static_cast<char*>(base);
  return window;
}

bool holds(const Window& window, CUdeviceptr pointer, std::size_t size) {
  const auto base = reinterpret_cast<CUdeviceptr>(window.base);
  return pointer >= base && pointer + size <= base + window.bytes;
}

TEST_F(Memory, AllOfADeviceLiesInOneWindow) {
  const Window window = windowOf(0);
  CUdeviceptr pointers[4] = {};
  EXPECT_CU(cuMemAlloc(&pointers[0], 1000));
  EXPECT_CU(cuMemAlloc(&pointers[1], 5 * kPiece + 1));
  EXPECT_CU(cuMemAllocManaged(&pointers[2], 70000, CU_MEM_ATTACH_GLOBAL));
  EXPECT_CU(cuMemAllocAsync(&pointers[3], 3 * kPiece, stream_));
  EXPECT_EQ(pointers[1] % kPiece, 0u);
  EXPECT_EQ(pointers[3] % kPiece, 0u);
  for (const CUdeviceptr pointer : pointers) {
    EXPECT_TRUE(holds(window, pointer, 1000));
    EXPECT_FALSE(holds(windowOf(1), pointer, 1000));
    EXPECT_CU(cuMemFree(pointer));
  }
  EXPECT_EQ(windowOf(0).base, window.base);
  int device = 0;
  EXPECT_CU(cuDeviceGetCount(&device));
  void* base = nullptr;
  std::size_t bytes = 0;
  CUipcMemHandle handle;
  EXPECT_CU_ERROR(static_cast<CUresult>(softgpuMemoryWindow(device, &base, &bytes, &handle)),
                  CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Memory, AddressesOfExportedRangesAreNotUsedAgain) {
  for (const std::size_t size : {std::size_t{1000}, 2 * kPiece}) {
    CUdeviceptr first = 0;
    CUdeviceptr second = 0;
    EXPECT_CU(cuMemAlloc(&first, size));
    EXPECT_CU(cuMemFree(first));
    EXPECT_CU(cuMemAlloc(&second, size));
    EXPECT_EQ(first, second);
    CUipcMemHandle handle;
    EXPECT_CU(cuIpcGetMemHandle(&handle, second));
    EXPECT_CU(cuMemFree(second));
    EXPECT_CU(cuMemAlloc(&second, size));
    EXPECT_NE(first, second);
    EXPECT_CU(cuMemFree(second));
  }
}

TEST_F(Memory, FreedPagesGoBackAndStayReadable) {
  for (const bool exported : {false, true}) {
    for (const std::size_t size : {std::size_t{32} << 10, 2 * kPiece}) {
      CUdeviceptr pointer = 0;
      EXPECT_CU(cuMemAlloc(&pointer, size));
      EXPECT_CU(cuMemsetD8(pointer, 42, size));
      CUipcMemHandle handle;
      if (exported) {
        EXPECT_CU(cuIpcGetMemHandle(&handle, pointer));
      }
      EXPECT_CU(cuMemFree(pointer));
      EXPECT_EQ(reinterpret_cast<const volatile char*>(pointer)[size / 2], 0) << size;
    }
  }
}

TEST_F(Memory, PagesOfSmallRangesGoBackWithTheLastOfThem) {
  constexpr std::size_t kSize = 512;
  std::vector<CUdeviceptr> pointers(64);
  for (CUdeviceptr& pointer : pointers) {
    EXPECT_CU(cuMemAlloc(&pointer, kSize));
    EXPECT_CU(cuMemsetD8(pointer, 42, kSize));
  }
  for (std::size_t i = 0; i < pointers.size(); i += 2) EXPECT_CU(cuMemFree(pointers[i]));
  for (std::size_t i = 1; i < pointers.size(); i += 2) {
    EXPECT_EQ(*reinterpret_cast<const volatile char*>(pointers[i]), 42);
    EXPECT_CU(cuMemFree(pointers[i]));
  }
  EXPECT_EQ(*reinterpret_cast<const volatile char*>(pointers[pointers.size() / 2]), 0);
}

TEST_F(Memory, HostRangesRegisterOnce) {
  alignas(4096) static char range[8192];
  EXPECT_CU(cuMemHostRegister(range, sizeof(range), 0));
  EXPECT_CU_ERROR(cuMemHostRegister(range, 16, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CUdeviceptr pointer = 0;
  EXPECT_CU(cuMemHostGetDevicePointer(&pointer, range + 8, 0));
  EXPECT_EQ(pointer, reinterpret_cast<CUdeviceptr>(range + 8));
  EXPECT_CU(cuMemHostUnregister(range));
  EXPECT_CU_ERROR(cuMemHostUnregister(range), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(Memory, MappingsOfOneDescriptorShareMemory) {
  const CUmemAllocationProp properties = onDevice(1);
  CUmemGenericAllocationHandle handles[2] = {};
  CUdeviceptr at[2] = {};
  EXPECT_CU(cuMemCreate(&handles[0], kPiece, &properties, 0));
  int fd = -1;
  EXPECT_CU(cuMemExportToShareableHandle(&fd, handles[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  EXPECT_CU(cuMemImportFromShareableHandle(&handles[1], reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  ::close(fd);
  CUmemAllocationProp imported = {};
  EXPECT_CU(cuMemGetAllocationPropertiesFromHandle(&imported, handles[1]));
  EXPECT_EQ(imported.location.id, 1);
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, {1}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (int i = 0; i < 2; ++i) {
    EXPECT_CU(cuMemAddressReserve(&at[i], kPiece, 0, 0, 0));
    EXPECT_CU(cuMemMap(at[i], kPiece, 0, handles[i], 0));
    EXPECT_CU(cuMemSetAccess(at[i], kPiece, &access, 1));
  }
  EXPECT_CU(cuMemsetD8(at[0], 42, kPiece));
  EXPECT_EQ(reinterpret_cast<char*>(at[1])[kPiece - 1], 42);
  CUmemGenericAllocationHandle retained = 0;
  EXPECT_CU(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(at[1] + 5)));
  EXPECT_EQ(retained, handles[1]);
  EXPECT_CU(cuMemRelease(retained));
  for (int i = 0; i < 2; ++i) {
    EXPECT_CU(cuMemUnmap(at[i], kPiece));
    EXPECT_CU(cuMemRelease(handles[i]));
    EXPECT_CU(cuMemAddressFree(at[i], kPiece));
  }
}

TEST_F(Memory, EntryPointsFollowTheVersionAsked) {
  void* symbol = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_CU(cuGetProcAddress("cuMemAlloc", &symbol, 3020, 0, &status));
  EXPECT_EQ(symbol, reinterpret_cast<void*>(&cuMemAlloc_v2));
  EXPECT_CU_ERROR(cuGetProcAddress("cuMemCreate", &symbol, 10010, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_CU_ERROR(cuGetProcAddress("cuNothing", &symbol, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST_F(Memory, EveryListedEntryPointExists) {
  struct Listed {
    const char* name;
    int version;
    const char* symbol;
  };
  const Listed listed[] = {
#define ENTRY(name, version, symbol) {name, version, symbol},
#include "softgpu/driver/entry_points.def"
#undef ENTRY
  };
  for (const Listed& entry : listed) {
    void* symbol = nullptr;
    EXPECT_CU(cuGetProcAddress(entry.name, &symbol, entry.version, 0, nullptr)) << entry.symbol;
  }
}

}  // namespace
}  // namespace tutti::softgpu::test
