// libcudart.so.12 as programs of CUDA 12 call it. The headers of CUDA 13 declare other forms under the same names, so
// this is declared here: what is an enumeration there is a number, what is a handle there a pointer.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>

extern "C" {

using Handle = struct AnyHandle*;  // of a stream, event, graph, node or kernel
struct EdgeData {
  unsigned char bytes[8];
};
struct Place {
  int type;
  int id;
};
struct Dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

int cudaRuntimeGetVersion(int* version);
int cudaDriverGetVersion(int* version);
int cudaGetDeviceCount(int* count);
int cudaSetDevice(int device);
int cudaGetDevice(int* device);
int cudaGetLastError();
int cudaDeviceGetAttribute(int* value, int attribute, int device);
int cudaGetDeviceProperties(void* properties, int device);
int cudaGetDeviceProperties_v2(void* properties, int device);
int cudaMalloc(void** pointer, std::size_t size);
int cudaMallocManaged(void** pointer, std::size_t size, unsigned flags);
int cudaFree(void* pointer);
int cudaMemcpy(void* to, const void* from, std::size_t count, int kind);
int cudaMemsetAsync(void* to, int value, std::size_t count, Handle stream);
int cudaMemcpyBatchAsync(void** to, void** from, std::size_t* sizes, std::size_t count, void* attributes,
                         std::size_t* attributeIndices, std::size_t attributeCount, std::size_t* failed, Handle stream);
int cudaMemcpyBatchAsync_ptsz(void** to, void** from, std::size_t* sizes, std::size_t count, void* attributes,
                              std::size_t* attributeIndices, std::size_t attributeCount, std::size_t* failed,
                              Handle stream);
int cudaPointerGetAttributes(void* attributes, const void* pointer);
int cudaMemAdvise(const void* pointer, std::size_t count, int advice, int device);
int cudaMemAdvise_v2(const void* pointer, std::size_t count, int advice, Place place);
int cudaMemPrefetchAsync(const void* pointer, std::size_t count, int device, Handle stream);
int cudaMemPrefetchAsync_v2(const void* pointer, std::size_t count, Place place, unsigned flags, Handle stream);
int cudaStreamCreate(Handle* stream);
int cudaStreamDestroy(Handle stream);
int cudaStreamSynchronize(Handle stream);
int cudaStreamBeginCapture(Handle stream, int mode);
int cudaStreamEndCapture(Handle stream, Handle* graph);
int cudaStreamGetCaptureInfo(Handle stream, int* status, unsigned long long* id);
int cudaStreamGetCaptureInfo_v2(Handle stream, int* status, unsigned long long* id, Handle* graph,
                                const Handle** dependencies, std::size_t* count);
int cudaStreamGetCaptureInfo_v3(Handle stream, int* status, unsigned long long* id, Handle* graph,
                                const Handle** dependencies, const EdgeData** edges, std::size_t* count);
int cudaStreamUpdateCaptureDependencies(Handle stream, Handle* dependencies, std::size_t count, unsigned flags);
int cudaEventCreate(Handle* event);
int cudaEventDestroy(Handle event);
int cudaEventRecord(Handle event, Handle stream);
int cudaEventSynchronize(Handle event);
int cudaEventElapsedTime(float* milliseconds, Handle start, Handle end);
int cudaEventElapsedTime_v2(float* milliseconds, Handle start, Handle end);
int cudaGraphCreate(Handle* graph, unsigned flags);
int cudaGraphDestroy(Handle graph);
int cudaGraphAddEmptyNode(Handle* node, Handle graph, const Handle* dependencies, std::size_t count);
int cudaGraphAddDependencies(Handle graph, const Handle* from, const Handle* to, std::size_t count);
int cudaGraphRemoveDependencies(Handle graph, const Handle* from, const Handle* to, std::size_t count);
int cudaGraphGetEdges(Handle graph, Handle* from, Handle* to, std::size_t* count);
int cudaGraphGetEdges_v2(Handle graph, Handle* from, Handle* to, EdgeData* edges, std::size_t* count);
int cudaGraphNodeGetDependencies(Handle node, Handle* nodes, std::size_t* count);
int cudaGraphNodeGetDependentNodes(Handle node, Handle* nodes, std::size_t* count);
int cudaGraphInstantiate(Handle* exec, Handle graph, unsigned long long flags);
int cudaGraphLaunch(Handle exec, Handle stream);
int cudaGraphExecDestroy(Handle exec);
int cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags, int* status);
int cudaThreadSynchronize();
int cudaThreadGetLimit(std::size_t* value, int limit);
int cudaThreadSetLimit(int limit, std::size_t value);
int cudaThreadExit();
int cudaSetDoubleForDevice(double* value);
int cudaLaunchCooperativeKernelMultiDevice(void* list, unsigned devices, unsigned flags);

// What nvcc's code calls.
void** __cudaRegisterFatBinary(void* binary);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* stub, char* deviceStub, const char* name, int threadLimit,
                            void* tid, void* bid, void* blockDim, void* gridDim, int* warpSize);
unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t sharedBytes, Handle stream);
int __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* sharedBytes, void* stream);
int cudaLaunchKernel(const void* stub, Dim3 grid, Dim3 block, void** args, std::size_t sharedBytes, Handle stream);

}  // extern "C"

namespace tutti::softgpu::cuda12::test {

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kInvalidDevice = 101;
constexpr int kNotSupported = 801;

/// Four devices; device 0 is current, the last error is clear.
class Cuda12 : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    ASSERT_EQ(cudaGetDeviceCount(&count), kSuccess) << "libcuda.so.1 must lie beside libcudart.so.12";
    ASSERT_EQ(count, 4) << "the tests want SOFTGPU_DEVICES=4";
    ASSERT_EQ(cudaSetDevice(0), kSuccess);
    cudaGetLastError();
  }
};

/// Room for a structure of `Size` bytes, with a border that nobody may write to.
template <std::size_t Size>
class Structure {
 public:
  Structure() { bytes_.fill(kBorder); }
  void* get() { return bytes_.data(); }
  template <class Member>
  Member at(std::size_t offset) const {
    Member value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  bool borderIsWhole() const {
    for (std::size_t i = Size; i < bytes_.size(); ++i) {
      if (bytes_[i] != kBorder) return false;
    }
    return true;
  }
  /// Whether the last `count` bytes of the structure have been written to.
  bool endIsWritten(std::size_t count) const {
    for (std::size_t i = Size - count; i < Size; ++i) {
      if (bytes_[i] == kBorder) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char kBorder = 0xb5;
  std::array<unsigned char, Size + 512> bytes_;
};

}  // namespace tutti::softgpu::cuda12::test
