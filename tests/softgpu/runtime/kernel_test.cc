// Kernels of the application, registered as the code that nvcc writes does.
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "softgpu/runtime/support.h"
#include "softgpu/toy_code.h"

// As the toolkit's crt/host_runtime.h declares them.
extern "C" {
void** __cudaRegisterFatBinary(void* binary);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* stub, char* deviceStub, const char* name, int threadLimit,
                            uint3* tid, uint3* bid, dim3* blockDim, dim3* gridDim, int* warpSize);
void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int ext, size_t size, int constant,
                       int global);
void __cudaRegisterManagedVar(void** handle, void** host, char* device, const char* name, int ext, size_t size,
                              int constant, int global);
char __cudaInitModule(void** handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t sharedBytes, CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* sharedBytes, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                               cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                                    cudaStream_t stream);
}

namespace tutti::softgpu {
namespace {

/// A binary with stubs, shadows of variables, and memory to write to.
class RuntimeKernels : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    enter(wrapper_);
    ASSERT_CUDA_OK(cudaMallocManaged(reinterpret_cast<void**>(&out_), kBytes));
    std::memset(out_, 0, kBytes);
  }
  void TearDown() override {
    EXPECT_CUDA(cudaSuccess, cudaDeviceSynchronize());
    __cudaUnregisterFatBinary(handle_);
    EXPECT_CUDA(cudaSuccess, cudaFree(out_));
    cudaGetLastError();
  }
  void enter(test::ToyWrapper& wrapper) {
    handle_ = __cudaRegisterFatBinary(&wrapper);
    for (auto& [stub, name] : {std::pair{&fill_, "fill"}, {&meet_, "meet"}, {&shape_, "shape"}, {&broken_, "broken"}}) {
      __cudaRegisterFunction(handle_, stub, stub, name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    }
    __cudaRegisterVar(handle_, &table_, &table_, "table", 0, 16, 1, 0);
    __cudaRegisterManagedVar(handle_, &managed_, &table_, "counter", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(handle_);
  }
  /// What nvcc makes of fill<<<grid, block, 0, stream>>>(out_, base, 1, 2.0).
  cudaError_t fill(dim3 grid, dim3 block, std::uint32_t base, cudaStream_t stream, bool perThread = false) {
    if (__cudaPushCallConfiguration(grid, block, 0, stream) != 0) return cudaErrorUnknown;
    cudaKernel_t kernel = nullptr;
    if (const cudaError_t error = __cudaGetKernel(&kernel, &fill_); error != cudaSuccess) return error;
    size_t shared = 1;
    if (const cudaError_t error = __cudaPopCallConfiguration(&grid, &block, &shared, &stream); error != cudaSuccess) {
      return error;
    }
    std::uint8_t small = 1;
    double real = 2.0;
    void* args[] = {&out_, &base, &small, &real};
    return (perThread ? __cudaLaunchKernel_ptsz : __cudaLaunchKernel)(kernel, grid, block, args, shared, stream);
  }

  static constexpr size_t kBytes = 64 << 10;
  test::ToyWrapper wrapper_{.image = test::kToyImage};
  void** handle_ = nullptr;
  char fill_ = 0;
  char meet_ = 0;
  char shape_ = 0;
  char broken_ = 0;
  char table_ = 0;
  void* managed_ = nullptr;
  std::uint32_t* out_ = nullptr;
};

TEST_F(RuntimeKernels, ALaunchInAngleBracketsRuns) {
  EXPECT_CUDA(cudaSuccess, fill(dim3(4, 2), dim3(8, 2, 2), 100, nullptr));
  EXPECT_CUDA(cudaSuccess, cudaDeviceSynchronize());
  for (std::uint32_t i = 0; i < 8 * 32; ++i) ASSERT_EQ(out_[i], 103 + i);
  EXPECT_CUDA(cudaSuccess, fill(1, 1, 500, nullptr, true));
  EXPECT_CUDA(cudaSuccess, cudaStreamSynchronize(cudaStreamPerThread));
  EXPECT_EQ(out_[0], 503u);
}

TEST_F(RuntimeKernels, AStubIsEnoughToLaunch) {
  void* args[] = {&out_};
  EXPECT_CUDA(cudaSuccess, cudaLaunchKernel(&meet_, 2, 64, args, 0, nullptr));
  EXPECT_CUDA(cudaSuccess, cudaDeviceSynchronize());
  EXPECT_EQ(out_[127], 63u * 64 / 2);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(3, 2);
  config.blockDim = dim3(4, 5, 6);
  config.dynamicSmemBytes = 64;
  EXPECT_CUDA(cudaSuccess, cudaLaunchKernelExC(&config, &shape_, args));
  EXPECT_CUDA(cudaSuccess, cudaDeviceSynchronize());
  const std::uint32_t expected[] = {4, 5, 6, 3, 2, 1, 64};
  EXPECT_EQ(std::memcmp(out_, expected, sizeof(expected)), 0);
  EXPECT_CUDA(cudaSuccess, cudaLaunchCooperativeKernel(&meet_, 2, 32, args, 0, nullptr));
  EXPECT_CUDA(cudaErrorCooperativeLaunchTooLarge, cudaLaunchCooperativeKernel(&meet_, 5000, 32, args, 0, nullptr));
}

TEST_F(RuntimeKernels, LaunchesThatCannotBeSaySo) {
  void* args[] = {&out_};
  int unknown = 0;
  EXPECT_CUDA(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(&unknown, 1, 1, args, 0, nullptr));
  EXPECT_CUDA(cudaErrorInvalidDeviceFunction, cudaGetLastError());
  EXPECT_CUDA(cudaErrorInvalidConfiguration, cudaLaunchKernel(&shape_, 1, 1025, args, 0, nullptr));
  EXPECT_CUDA(cudaErrorInvalidConfiguration, cudaLaunchKernel(&shape_, 0, 1, args, 0, nullptr));
  EXPECT_CUDA(cudaErrorNotSupported, cudaLaunchKernel(&broken_, 1, 1, args, 0, nullptr));
  EXPECT_CUDA(cudaErrorNotSupported, cudaGetLastError());
}

TEST_F(RuntimeKernels, ABinaryWithoutCodeFailsWhereItIsUsedAndNamesTheKernel) {
  test::ToyWrapper empty{.image = "no code"};
  __cudaUnregisterFatBinary(handle_);
  enter(empty);
  testing::internal::CaptureStderr();
  EXPECT_CUDA(cudaErrorNoKernelImageForDevice, fill(1, 1, 0, nullptr));
  EXPECT_CUDA(cudaErrorNoKernelImageForDevice, fill(1, 1, 0, nullptr));
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("this is no toy"), std::string::npos) << told;
  EXPECT_NE(told.find("kernel 'fill' cannot run"), std::string::npos) << told;
  EXPECT_EQ(told.find("kernel 'fill'"), told.rfind("kernel 'fill'")) << "once: " << told;
}

TEST_F(RuntimeKernels, SymbolsAreCopiedToAndFrom) {
  std::uint32_t values[4] = {};
  size_t bytes = 0;
  void* address = nullptr;
  EXPECT_CUDA(cudaSuccess, cudaGetSymbolSize(&bytes, &table_));
  EXPECT_EQ(bytes, 16u);
  EXPECT_CUDA(cudaSuccess, cudaGetSymbolAddress(&address, &table_));
  EXPECT_CUDA(cudaSuccess, cudaMemcpyFromSymbol(values, &table_, 8, 8, cudaMemcpyDeviceToHost));
  EXPECT_EQ(values[0], 3u);
  const std::uint32_t nine = 9;
  EXPECT_CUDA(cudaSuccess, cudaMemcpyToSymbolAsync(&table_, &nine, 4, 12, cudaMemcpyHostToDevice, nullptr));
  EXPECT_CUDA(cudaSuccess, cudaMemcpy(values, address, 16, cudaMemcpyDeviceToHost));
  EXPECT_EQ(values[3], 9u);
  EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpyToSymbol(&table_, values, 8, 12, cudaMemcpyHostToDevice));
  EXPECT_CUDA(cudaErrorInvalidMemcpyDirection, cudaMemcpyToSymbol(&table_, values, 8, 0, cudaMemcpyDeviceToHost));
  EXPECT_CUDA(cudaErrorInvalidSymbol, cudaGetSymbolSize(&bytes, &fill_));
}

TEST_F(RuntimeKernels, SymbolsOfOtherDevicesAreOthers) {
  void* first = nullptr;
  void* second = nullptr;
  EXPECT_CUDA(cudaSuccess, cudaGetSymbolAddress(&first, &table_));
  EXPECT_CUDA(cudaSuccess, cudaSetDevice(1));
  EXPECT_CUDA(cudaSuccess, cudaGetSymbolAddress(&second, &table_));
  EXPECT_CUDA(cudaSuccess, cudaSetDevice(0));
  EXPECT_NE(first, second);
}

TEST_F(RuntimeKernels, ManagedVariablesAreTheHostsOnceTheBinaryIsUsed) {
  EXPECT_EQ(managed_, nullptr) << "registering loads nothing";
  EXPECT_EQ(__cudaInitModule(handle_), 1);
  ASSERT_NE(managed_, nullptr);
  EXPECT_EQ(*static_cast<std::uint32_t*>(managed_), test::kToyCounter);
}

TEST_F(RuntimeKernels, AttributesAndOccupancyAreTold) {
  cudaFuncAttributes attributes{};
  EXPECT_CUDA(cudaSuccess, cudaFuncGetAttributes(&attributes, &meet_));
  EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
  EXPECT_EQ(attributes.sharedSizeBytes, 128u);
  EXPECT_CUDA(cudaSuccess, cudaFuncSetAttribute(&meet_, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
  EXPECT_CUDA(cudaSuccess, cudaFuncGetAttributes(&attributes, &meet_));
  EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, 100 << 10);
  const char* name = nullptr;
  EXPECT_CUDA(cudaSuccess, cudaFuncGetName(&name, &meet_));
  EXPECT_STREQ(name, "meet");
  int blocks = 0;
  EXPECT_CUDA(cudaSuccess, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &meet_, 512, 0));
  EXPECT_EQ(blocks, 4);
  EXPECT_CUDA(cudaErrorInvalidDeviceFunction, cudaFuncGetAttributes(&attributes, &table_));
}

TEST_F(RuntimeKernels, KernelHandlesOfLibrariesAreLaunchedLikeStubs) {
  cudaLibrary_t library = nullptr;
  ASSERT_CUDA_OK(cudaLibraryLoadData(&library, test::kToyImage, nullptr, nullptr, 0, nullptr, nullptr, 0));
  cudaKernel_t shape = nullptr;
  EXPECT_CUDA(cudaSuccess, cudaLibraryGetKernel(&shape, library, "shape"));
  void* args[] = {&out_};
  EXPECT_CUDA(cudaSuccess, cudaLaunchKernel(shape, dim3(2, 2), dim3(3), args, 0, nullptr));
  EXPECT_CUDA(cudaSuccess, cudaDeviceSynchronize());
  EXPECT_EQ(out_[4], 2u);
  EXPECT_CUDA(cudaSuccess, cudaLibraryUnload(library));
  EXPECT_CUDA(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(shape, 1, 1, args, 0, nullptr));
  cudaKernel_t meet = nullptr;
  EXPECT_CUDA(cudaSuccess, cudaGetKernel(&meet, &meet_));
  EXPECT_CUDA(cudaSuccess, cudaLaunchKernel(meet, 1, 32, args, 0, nullptr));
}

TEST_F(RuntimeKernels, GraphsTakeKernelNodes) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphExec_t exec = nullptr;
  void* args[] = {&out_};
  cudaKernelNodeParams params = {};
  params.func = &shape_;
  params.gridDim = dim3(1, 7);
  params.blockDim = dim3(2);
  params.kernelParams = args;
  ASSERT_CUDA_OK(cudaGraphCreate(&graph, 0));
  EXPECT_CUDA(cudaSuccess, cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  ASSERT_CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_CUDA(cudaSuccess, cudaGraphLaunch(exec, nullptr));
  EXPECT_CUDA(cudaSuccess, cudaDeviceSynchronize());
  EXPECT_EQ(out_[4], 7u);
  params.gridDim = dim3(1, 9);
  EXPECT_CUDA(cudaSuccess, cudaGraphExecKernelNodeSetParams(exec, node, &params));
  EXPECT_CUDA(cudaSuccess, cudaGraphLaunch(exec, nullptr));
  EXPECT_CUDA(cudaSuccess, cudaDeviceSynchronize());
  EXPECT_EQ(out_[4], 9u);
  EXPECT_CUDA(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_CUDA(cudaSuccess, cudaGraphDestroy(graph));
}

}  // namespace
}  // namespace tutti::softgpu
