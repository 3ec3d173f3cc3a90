// Memory shared with another process: this program starts itself again, with the handle on the command line.
#include <spawn.h>
#include <sys/wait.h>

#include <cstring>
#include <string>

#include "softgpu/runtime/support.h"

extern char** environ;

namespace tutti::softgpu {
namespace {

constexpr char kChildFlag[] = "--open-handle=";

std::string toHex(const cudaIpcMemHandle_t& handle) {
  std::string text;
  for (const char byte : handle.reserved) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

cudaIpcMemHandle_t fromHex(const std::string& text) {
  cudaIpcMemHandle_t handle{};
  for (size_t i = 0; i < sizeof handle.reserved && 2 * i + 1 < text.size(); ++i)
    handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return handle;
}

/// The other process: expects 17 in the memory and leaves 18 there. Returns the exit status.
int beChild(const std::string& hex) {
  void* memory = nullptr;
  int value = 0;
  if (cudaIpcOpenMemHandle(&memory, fromHex(hex), cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) return 10;
  if (cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost) != cudaSuccess || value != 17) return 11;
  value = 18;
  if (cudaMemcpy(memory, &value, sizeof value, cudaMemcpyHostToDevice) != cudaSuccess) return 12;
  return cudaIpcCloseMemHandle(memory) == cudaSuccess ? 0 : 13;
}

int runChild(const std::string& argument) {
  char program[] = "/proc/self/exe";
  std::string flag = argument;
  char* args[] = {program, flag.data(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, program, nullptr, nullptr, args, environ) != 0) return -1;
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

using RuntimeIpc = RuntimeTest;

TEST_F(RuntimeIpc, AnotherProcessSeesAndChangesTheMemory) {
  int value = 17;
  void* memory = nullptr;
  ASSERT_CUDA_OK(cudaMalloc(&memory, 4096));
  ASSERT_CUDA_OK(cudaMemcpy(memory, &value, sizeof value, cudaMemcpyHostToDevice));
  cudaIpcMemHandle_t handle{};
  ASSERT_CUDA_OK(cudaIpcGetMemHandle(&handle, memory));
  EXPECT_EQ(runChild(kChildFlag + toHex(handle)), 0);
  ASSERT_CUDA_OK(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT_EQ(value, 18);
  ASSERT_CUDA_OK(cudaFree(memory));
}

TEST_F(RuntimeIpc, TheOwnHandleCannotBeOpened) {
  void* memory = nullptr;
  void* again = nullptr;
  ASSERT_CUDA_OK(cudaMalloc(&memory, 4096));
  cudaIpcMemHandle_t handle{};
  ASSERT_CUDA_OK(cudaIpcGetMemHandle(&handle, memory));
  EXPECT_NE(cudaSuccess, cudaIpcOpenMemHandle(&again, handle, cudaIpcMemLazyEnablePeerAccess));
  cudaGetLastError();
  ASSERT_CUDA_OK(cudaFree(memory));
}

}  // namespace
}  // namespace tutti::softgpu

int main(int argc, char** argv) {
  const std::string flag = tutti::softgpu::kChildFlag;
  if (argc == 2 && std::string(argv[1]).rfind(flag, 0) == 0)
    return tutti::softgpu::beChild(std::string(argv[1]).substr(flag.size()));
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
