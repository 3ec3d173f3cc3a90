// Several processes: the other one is child_program.cc, named by SOFTGPU_TEST_CHILD.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "softgpu/cuda_fixture.h"
#include "softgpu/memory_window.h"

namespace tutti::softgpu::test {
namespace {

class Processes : public CudaTest {};

std::string hex(const void* data, std::size_t size) {
  std::string text;
  char digits[3];
  for (std::size_t i = 0; i < size; ++i) {
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<const unsigned char*>(data)[i]);
    text += digits;
  }
  return text;
}

/// Runs the child program with these words; its exit status, -1 if it was killed.
int runChild(const std::vector<std::string>& words, const char* variable = "SOFTGPU_UNUSED", const char* value = "") {
  std::vector<char*> arguments = {std::getenv("SOFTGPU_TEST_CHILD")};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv(variable, value, 1);
    ::execv(arguments[0], arguments.data());
    ::_exit(126);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Processes, ShareMemoryByHandle) {
  std::uint32_t* data = words();
  data[3] = 77;
  CUipcMemHandle handle;
  EXPECT_CU(cuIpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(data)));
  EXPECT_EQ(runChild({"memory", hex(&handle, sizeof(handle))}), 0);
  EXPECT_EQ(data[4], 78u);
  CUdeviceptr own = 0;
  EXPECT_CU_ERROR(cuIpcOpenMemHandle(&own, handle, 0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Processes, ShareEventsByHandle) {
  CUevent event = nullptr;
  EXPECT_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
  CUipcEventHandle handle;
  EXPECT_CU(cuIpcGetEventHandle(&handle, event));
  EXPECT_EQ(runChild({"event", hex(&handle, sizeof(handle))}), 0);
  EXPECT_CU(cuEventSynchronize(event));
  EXPECT_CU(cuEventDestroy(event));
}

TEST_F(Processes, StaleHandlesAreRefused) {
  for (const std::size_t size : {std::size_t{1000}, std::size_t{8} << 20}) {
    CUdeviceptr pointer = 0;
    EXPECT_CU(cuMemAlloc(&pointer, size));
    CUipcMemHandle handle;
    EXPECT_CU(cuIpcGetMemHandle(&handle, pointer));
    EXPECT_CU(cuMemFree(pointer));
    EXPECT_EQ(runChild({"memory", hex(&handle, sizeof(handle))}), 40) << size;
  }
}

TEST_F(Processes, OpenOneAllocationSeveralTimes) {
  std::uint32_t* data = words();
  data[3] = 77;
  CUipcMemHandle handle;
  EXPECT_CU(cuIpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(data)));
  EXPECT_EQ(runChild({"twice", hex(&handle, sizeof(handle))}), 0);
  EXPECT_EQ(data[4], 79u);
}

TEST_F(Processes, MapAWholeWindowAndAllocationsInIt) {
  std::uint32_t* data = words();
  data[3] = 77;
  CUipcMemHandle handle;
  EXPECT_CU(cuIpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(data)));
  void* base = nullptr;
  std::size_t bytes = 0;
  CUipcMemHandle window;
  EXPECT_CU(static_cast<CUresult>(softgpuMemoryWindow(0, &base, &bytes, &window)));
  const auto offset = reinterpret_cast<char*>(data) - static_cast<char*>(base);
  EXPECT_EQ(runChild({"window", hex(&handle, sizeof(handle)), hex(&window, sizeof(window)), std::to_string(offset)}),
            0);
  EXPECT_EQ(data[4], 80u);
}

TEST_F(Processes, ShareMemoryAlsoWithoutAWindow) {
  EXPECT_EQ(runChild({"windowless"}), 0);
}

TEST_F(Processes, ALimitOfAFilesSizeIsWantOfMemoryAndNoSignal) {
  EXPECT_EQ(runChild({"fileless"}), 0);
}

TEST_F(Processes, AskedForFailureHappensOnce) {
  EXPECT_EQ(runChild({"failure"}, "SOFTGPU_FAIL", "cuMemAlloc:3"), 0);
}

TEST_F(Processes, ExitWithWorkPendingDoesNotHang) {
  EXPECT_EQ(runChild({"exit"}), 0);
}

TEST_F(Processes, StaticObjectsMayUseTheDeviceAtTheEnd) {
  EXPECT_EQ(runChild({"static"}), 0);
}

TEST_F(Processes, DeviceKeepsItsNameWhereNoFileCanBeOpened) {
  CUuuid before{};
  EXPECT_CU(cuDeviceGetUuid(&before, 0));
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit none = limit;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  CUuuid without{};
  const CUresult asked = cuDeviceGetUuid(&without, 0);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_CU(asked);
  EXPECT_EQ(std::memcmp(&before, &without, sizeof(before)), 0);
}

TEST_F(Processes, NobodyWaitsForWorkThatNoThreadCanDo) {
  EXPECT_EQ(runChild({"threadless"}), 0);
}

TEST_F(Processes, ForkedChildStartsAnew) {
  EXPECT_EQ(runChild({"fork"}), 0);
}

TEST_F(Processes, VisibleDevicesAreChosen) {
  EXPECT_EQ(runChild({"devices", "1"}, "CUDA_VISIBLE_DEVICES", "1"), 0);
}

TEST_F(Processes, DevicesAreThoseOfATopologyFile) {
  const std::string path = testing::TempDir() + "softgpu-topology-" + std::to_string(::getpid()) + ".xml";
  std::ofstream(path) << R"(<system version="1"><cpu>
    <pci busid="0000:30:00.0"><gpu dev="1" sm="90"/></pci><pci busid="0000:11:00.0"><gpu dev="0" sm="80"/></pci>
    <pci busid="0000:40:00.0"><gpu dev="2" sm="90"/></pci></cpu></system>)";
  EXPECT_EQ(runChild({"devices", "2"}, "SOFTGPU_TOPO", path.c_str()), 0) << "no more than SOFTGPU_DEVICES says";
  EXPECT_EQ(runChild({"capability", "80"}, "SOFTGPU_TOPO", path.c_str()), 0);
  ::unlink(path.c_str());
  EXPECT_EQ(runChild({"capability", "90"}, "SOFTGPU_TOPO", path.c_str()), 0) << "no file: the usual devices";
}

TEST_F(Processes, MemoryIsWhatWasAskedFor) {
  EXPECT_EQ(runChild({"limit", "3145728"}, "SOFTGPU_MEMORY", "3M"), 0);
  EXPECT_EQ(runChild({"limit", "3145728"}, "SOFTGPU_MEMORY", "three"), 20) << "no number: the usual memory";
}

TEST_F(Processes, NicsAreToldOfMemoryAsAskedFor) {
  EXPECT_EQ(runChild({"reach", "00"}), 0);
  EXPECT_EQ(runChild({"reach", "10"}, "SOFTGPU_GDR", "peer"), 0);
  EXPECT_EQ(runChild({"reach", "11"}, "SOFTGPU_GDR", "dmabuf"), 0);
  EXPECT_EQ(runChild({"reach", "00"}, "SOFTGPU_GDR", "none"), 0);
  EXPECT_EQ(runChild({"reach", "00"}, "SOFTGPU_GDR", "all"), 0) << "it is named on stderr";
}

TEST_F(Processes, FullDeviceRunsBlocksAfterEachOther) {
  EXPECT_EQ(runChild({"blocks"}, "SOFTGPU_BLOCK_SLOTS", "2"), 0);
}

}  // namespace
}  // namespace tutti::softgpu::test
