// Calls that came after CUDA 13.0: those that carry out what older ones do, under other names.
#include <array>
#include <cstring>
#include <vector>

#include "softgpu/runtime/support.h"
#include "softgpu/toy_code.h"

// As the headers of CUDA 13.2 declare them.
extern "C" {
cudaError_t cudaFuncGetParamCount(const void* function, size_t* count);
cudaError_t cudaLaunchHostFunc_v2(cudaStream_t stream, cudaHostFn_t function, void* userData, unsigned int syncMode);
cudaError_t cudaMemcpyWithAttributesAsync(void* to, const void* from, size_t size, cudaMemcpyAttributes* attributes,
                                          cudaStream_t stream);
cudaError_t cudaMemcpyWithAttributesAsync_ptsz(void* to, const void* from, size_t size,
                                               cudaMemcpyAttributes* attributes, cudaStream_t stream);
cudaError_t cudaMemcpy3DWithAttributesAsync(cudaMemcpy3DBatchOp* copy, unsigned long long flags, cudaStream_t stream);
// As the toolkit's crt/host_runtime.h declares them.
void** __cudaRegisterFatBinary(void* binary);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* stub, char* deviceStub, const char* name, int threadLimit,
                            uint3* tid, uint3* bid, dim3* blockDim, dim3* gridDim, int* warpSize);
}

namespace tutti::softgpu {
namespace {

class RuntimeLaterCalls : public RuntimeTest {};

TEST_F(RuntimeLaterCalls, HostFunctionsRunInBothModesAndInNoOther) {
  int calls = 0;
  const cudaHostFn_t count = [](void* number) { ++*static_cast<int*>(number); };
  for (const unsigned mode : {0u, 1u}) EXPECT_CUDA(cudaSuccess, cudaLaunchHostFunc_v2(nullptr, count, &calls, mode));
  EXPECT_CUDA(cudaErrorInvalidValue, cudaLaunchHostFunc_v2(nullptr, count, &calls, 2));
  EXPECT_CUDA(cudaErrorInvalidValue, cudaLaunchHostFunc_v2(nullptr, nullptr, &calls, 0));
  EXPECT_CUDA(cudaSuccess, cudaStreamSynchronize(nullptr));
  EXPECT_EQ(calls, 2);
  cudaGetLastError();
}

TEST_F(RuntimeLaterCalls, ACopyWithAttributesArrives) {
  std::vector<char> from(4096, 3);
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  for (auto* copy : {&cudaMemcpyWithAttributesAsync, &cudaMemcpyWithAttributesAsync_ptsz}) {
    std::vector<char> to(4096, 0);
    EXPECT_CUDA(cudaSuccess, copy(to.data(), from.data(), to.size(), &attributes, cudaStreamPerThread));
    EXPECT_CUDA(cudaSuccess, cudaStreamSynchronize(cudaStreamPerThread));
    EXPECT_EQ(to, from);
    EXPECT_CUDA(cudaErrorInvalidValue, copy(to.data(), from.data(), to.size(), nullptr, nullptr));
  }
  cudaGetLastError();
}

TEST_F(RuntimeLaterCalls, ABoxIsCopiedBetweenRowsOfDifferentLengths) {
  // 2 layers of 3 rows of 4 bytes, out of rows of 6 and layers of 5 rows, close together where they go.
  std::array<char, 2 * 5 * 6> from{};
  std::array<char, 2 * 3 * 4> to{};
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i);
  cudaMemcpy3DBatchOp copy{};
  copy.src.type = cudaMemcpyOperandTypePointer;
  copy.src.op.ptr = {from.data(), 6, 5, {}};
  copy.dst.type = cudaMemcpyOperandTypePointer;
  copy.dst.op.ptr = {to.data(), 0, 0, {}};
  copy.extent = {4, 3, 2};
  copy.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  EXPECT_CUDA(cudaSuccess, cudaMemcpy3DWithAttributesAsync(&copy, 0, nullptr));
  EXPECT_CUDA(cudaSuccess, cudaStreamSynchronize(nullptr));
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t row = i / 4;
    EXPECT_EQ(to[i], static_cast<char>((row / 3 * 5 + row % 3) * 6 + i % 4)) << i;
  }
  EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy3DWithAttributesAsync(&copy, 1, nullptr));
  EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy3DWithAttributesAsync(nullptr, 0, nullptr));
  copy.srcAccessOrder = cudaMemcpySrcAccessOrderInvalid;
  EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy3DWithAttributesAsync(&copy, 0, nullptr));
  copy.src.type = cudaMemcpyOperandTypeArray;
  EXPECT_CUDA(cudaErrorNotSupported, cudaMemcpy3DWithAttributesAsync(&copy, 0, nullptr));
  cudaGetLastError();
}

TEST_F(RuntimeLaterCalls, ParametersOfAKernelAreCounted) {
  test::ToyWrapper wrapper{.image = test::kToyImage};
  char fill = 0;
  char meet = 0;
  void** binary = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFunction(binary, &fill, &fill, "fill", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  __cudaRegisterFunction(binary, &meet, &meet, "meet", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  size_t count = 0;
  EXPECT_CUDA(cudaSuccess, cudaFuncGetParamCount(&fill, &count));
  EXPECT_EQ(count, 4u);
  EXPECT_CUDA(cudaSuccess, cudaFuncGetParamCount(&meet, &count));
  EXPECT_EQ(count, 1u);
  EXPECT_CUDA(cudaErrorInvalidValue, cudaFuncGetParamCount(&fill, nullptr));
  EXPECT_CUDA(cudaErrorInvalidDeviceFunction, cudaFuncGetParamCount(&count, &count));
  __cudaUnregisterFatBinary(binary);
  cudaGetLastError();
}

}  // namespace
}  // namespace tutti::softgpu
