// Calls whose form or structure CUDA 13 has changed, in that of CUDA 12.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "softgpu/runtime/cuda12/abi.h"

namespace tutti::softgpu::cuda12::test {
namespace {

/// A member of CUDA 12's cudaDeviceProp and the attribute that tells the same.
struct Member {
  std::size_t offset;
  int attribute;
};
constexpr Member kMembers[] = {
    {308, 10},   // warpSize
    {348, 13},   // clockRate, which 13 has no longer
    {360, 75},   // major
    {364, 76},   // minor
    {388, 16},   // multiProcessorCount
    {404, 20},   // computeMode, which 13 has no longer
    {584, 33},   // pciBusID
    {604, 41},   // unifiedAddressing
    {624, 39},   // maxThreadsPerMultiProcessor
    {712, 106},  // maxBlocksPerMultiProcessor
};

TEST_F(Cuda12, PropertiesHaveTheLayoutOf12) {
  Structure<1032> properties;
  ASSERT_EQ(cudaGetDeviceProperties_v2(properties.get(), 1), kSuccess);
  EXPECT_TRUE(properties.borderIsWhole());
  EXPECT_TRUE(properties.endIsWritten(4));
  for (const Member& member : kMembers) {
    int value = -1;
    ASSERT_EQ(cudaDeviceGetAttribute(&value, member.attribute, 1), kSuccess);
    EXPECT_EQ(properties.at<int>(member.offset), value) << "at " << member.offset;
  }
  EXPECT_GT(std::strlen(static_cast<const char*>(properties.get())), 0u);
  EXPECT_GT(properties.at<std::size_t>(288), 0u) << "totalGlobalMem";
  int canCluster = -1;
  ASSERT_EQ(cudaDeviceGetAttribute(&canCluster, 120, 1), kSuccess);
  EXPECT_EQ(properties.at<int>(772), canCluster) << "clusterLaunch";
  EXPECT_EQ(cudaGetDeviceProperties_v2(properties.get(), 4), kInvalidDevice);
  EXPECT_EQ(cudaGetDeviceProperties_v2(nullptr, 0), kInvalidValue);
}

TEST_F(Cuda12, PropertiesWithoutAVersionHaveTheLayoutOf11) {
  Structure<728> properties;
  ASSERT_EQ(cudaGetDeviceProperties(properties.get(), 0), kSuccess);
  EXPECT_TRUE(properties.borderIsWhole());
  EXPECT_TRUE(properties.endIsWritten(8));
  int blocks = -1;
  ASSERT_EQ(cudaDeviceGetAttribute(&blocks, 106, 0), kSuccess);
  EXPECT_EQ(properties.at<int>(712), blocks);
  Structure<728> untouched;
  EXPECT_EQ(cudaGetDeviceProperties(untouched.get(), 4), kInvalidDevice);
  EXPECT_FALSE(untouched.endIsWritten(1));
}

TEST_F(Cuda12, PointerAttributesEndWhereThoseOf12Do) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), kSuccess);
  Structure<24> attributes;
  EXPECT_EQ(cudaPointerGetAttributes(attributes.get(), memory), kSuccess);
  EXPECT_TRUE(attributes.borderIsWhole());
  EXPECT_EQ(attributes.at<int>(0), 2) << "cudaMemoryTypeDevice";
  EXPECT_EQ(attributes.at<int>(4), 0) << "its device";
  EXPECT_EQ(attributes.at<void*>(8), memory);
  EXPECT_EQ(attributes.at<void*>(16), nullptr) << "not for the host";
  EXPECT_EQ(cudaFree(memory), kSuccess);
}

TEST_F(Cuda12, BatchesOfCopiesTellOfNoCopyInParticular) {
  std::vector<char> from(64, 7);
  std::vector<char> to(64, 0);
  void* targets[] = {to.data(), to.data() + 32};
  void* sources[] = {from.data(), from.data() + 32};
  std::size_t sizes[] = {32, 16};
  std::size_t failed = 5;
  for (auto* copy : {&cudaMemcpyBatchAsync, &cudaMemcpyBatchAsync_ptsz}) {
    Handle stream = nullptr;
    ASSERT_EQ(cudaStreamCreate(&stream), kSuccess);
    std::fill(to.begin(), to.end(), 0);
    EXPECT_EQ(copy(targets, sources, sizes, 2, nullptr, nullptr, 0, &failed, stream), kSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), kSuccess);
    EXPECT_EQ(to[47], 7);
    EXPECT_EQ(to[48], 0);
    EXPECT_EQ(failed, 5u) << "only a failure is told";
    EXPECT_EQ(copy(nullptr, sources, sizes, 2, nullptr, nullptr, 0, nullptr, stream), kInvalidValue);
    EXPECT_EQ(copy(nullptr, sources, sizes, 2, nullptr, nullptr, 0, &failed, stream), kInvalidValue);
    EXPECT_EQ(failed, SIZE_MAX);
    failed = 5;
    EXPECT_EQ(cudaStreamDestroy(stream), kSuccess);
  }
}

TEST_F(Cuda12, AdviceAndPrefetchTakeDevicesAndPlaces) {
  constexpr int kProcessors = -1;
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocManaged(&memory, 4096, 1), kSuccess);
  EXPECT_EQ(cudaMemAdvise(memory, 4096, 1, 2), kSuccess);
  EXPECT_EQ(cudaMemAdvise_v2(memory, 4096, 1, Place{1, 2}), kSuccess);
  EXPECT_EQ(cudaMemPrefetchAsync(memory, 4096, 2, nullptr), kSuccess);
  EXPECT_EQ(cudaMemPrefetchAsync(memory, 4096, kProcessors, nullptr), kSuccess);
  EXPECT_EQ(cudaMemPrefetchAsync_v2(memory, 4096, Place{1, 2}, 0, nullptr), kSuccess);
  EXPECT_EQ(cudaMemPrefetchAsync(nullptr, 4096, 2, nullptr), kInvalidValue);
  EXPECT_EQ(cudaFree(memory), kSuccess);
}

TEST_F(Cuda12, ACaptureTellsTheSameInAllForms) {
  Handle stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), kSuccess);
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocManaged(&memory, 64, 1), kSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, 2), kSuccess);
  ASSERT_EQ(cudaMemsetAsync(memory, 9, 64, stream), kSuccess);
  int status = -1;
  unsigned long long ids[3] = {};
  Handle graphs[2] = {};
  const Handle* nodes[2] = {};
  const EdgeData* edges = nullptr;
  std::size_t counts[2] = {};
  EXPECT_EQ(cudaStreamGetCaptureInfo(stream, &status, &ids[0]), kSuccess);
  EXPECT_EQ(status, 1) << "active";
  EXPECT_EQ(cudaStreamGetCaptureInfo_v2(stream, &status, &ids[1], &graphs[0], &nodes[0], &counts[0]), kSuccess);
  ASSERT_EQ(counts[0], 1u);
  ASSERT_NE(nodes[0], nullptr);
  const Handle last = nodes[0][0];
  EXPECT_EQ(cudaStreamGetCaptureInfo_v3(stream, &status, &ids[2], &graphs[1], &nodes[1], &edges, &counts[1]), kSuccess);
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(ids[0], ids[2]);
  EXPECT_NE(graphs[0], nullptr);
  EXPECT_EQ(graphs[0], graphs[1]);
  ASSERT_EQ(counts[1], 1u);
  EXPECT_EQ(nodes[1][0], last);
  // Nothing that comes hangs on the fill.
  EXPECT_EQ(cudaStreamUpdateCaptureDependencies(stream, nullptr, 0, 1), kSuccess);
  EXPECT_EQ(cudaStreamGetCaptureInfo_v2(stream, &status, &ids[1], nullptr, &nodes[0], &counts[0]), kSuccess);
  EXPECT_EQ(counts[0], 0u);
  Handle again = last;
  EXPECT_EQ(cudaStreamUpdateCaptureDependencies(stream, &again, 1, 0), kSuccess);
  EXPECT_EQ(cudaStreamGetCaptureInfo_v2(stream, &status, &ids[1], nullptr, &nodes[0], &counts[0]), kSuccess);
  EXPECT_EQ(counts[0], 1u);
  Handle graph = nullptr;
  Handle exec = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), kSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), kSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), kSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), kSuccess);
  EXPECT_EQ(static_cast<char*>(memory)[63], 9);
  EXPECT_EQ(cudaGraphExecDestroy(exec), kSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), kSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), kSuccess);
  EXPECT_EQ(cudaFree(memory), kSuccess);
}

TEST_F(Cuda12, EdgesOfGraphsAreToldWithAndWithoutData) {
  Handle graph = nullptr;
  Handle nodes[2] = {};
  ASSERT_EQ(cudaGraphCreate(&graph, 0), kSuccess);
  for (Handle& node : nodes) ASSERT_EQ(cudaGraphAddEmptyNode(&node, graph, nullptr, 0), kSuccess);
  EXPECT_EQ(cudaGraphAddDependencies(graph, &nodes[0], &nodes[1], 1), kSuccess);
  Handle from = nullptr;
  Handle to = nullptr;
  std::size_t count = 1;
  EXPECT_EQ(cudaGraphGetEdges(graph, &from, &to, &count), kSuccess);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(from, nodes[0]);
  EXPECT_EQ(to, nodes[1]);
  EdgeData data;
  std::memset(&data, 1, sizeof data);
  EXPECT_EQ(cudaGraphGetEdges_v2(graph, &from, &to, &data, &count), kSuccess);
  EXPECT_EQ(data.bytes[0], 0);
  EXPECT_EQ(cudaGraphNodeGetDependencies(nodes[1], &from, &count), kSuccess);
  EXPECT_EQ(from, nodes[0]);
  EXPECT_EQ(cudaGraphNodeGetDependentNodes(nodes[0], &to, &count), kSuccess);
  EXPECT_EQ(to, nodes[1]);
  EXPECT_EQ(cudaGraphRemoveDependencies(graph, &nodes[0], &nodes[1], 1), kSuccess);
  EXPECT_EQ(cudaGraphGetEdges(graph, nullptr, nullptr, &count), kSuccess);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(cudaGraphDestroy(graph), kSuccess);
}

TEST_F(Cuda12, EventsAreTimedByBothForms) {
  Handle events[2] = {};
  for (Handle& event : events) {
    ASSERT_EQ(cudaEventCreate(&event), kSuccess);
    ASSERT_EQ(cudaEventRecord(event, nullptr), kSuccess);
  }
  ASSERT_EQ(cudaEventSynchronize(events[1]), kSuccess);
  float first = -1;
  float second = -1;
  EXPECT_EQ(cudaEventElapsedTime(&first, events[0], events[1]), kSuccess);
  EXPECT_EQ(cudaEventElapsedTime_v2(&second, events[0], events[1]), kSuccess);
  EXPECT_GE(first, 0);
  EXPECT_EQ(first, second);
  for (Handle event : events) EXPECT_EQ(cudaEventDestroy(event), kSuccess);
}

TEST_F(Cuda12, CallsForThreadsAreThoseForDevices) {
  std::size_t limit = 0;
  EXPECT_EQ(cudaThreadGetLimit(&limit, 0), kSuccess);
  EXPECT_GT(limit, 0u);
  EXPECT_EQ(cudaThreadGetLimit(nullptr, 0), kInvalidValue);
  EXPECT_EQ(cudaThreadSetLimit(0, limit), kSuccess);
  EXPECT_EQ(cudaThreadSynchronize(), kSuccess);
  double number = 1.5;
  EXPECT_EQ(cudaSetDoubleForDevice(&number), kSuccess);
  EXPECT_EQ(number, 1.5);
  void* memory = nullptr;
  ASSERT_EQ(cudaSetDevice(3), kSuccess);
  ASSERT_EQ(cudaMalloc(&memory, 64), kSuccess);
  EXPECT_EQ(cudaThreadExit(), kSuccess);
  EXPECT_NE(cudaFree(memory), kSuccess) << "it went with the device's context";
  cudaGetLastError();
}

TEST_F(Cuda12, DriverFunctionsAreThoseOf12) {
  int status = -1;
  void* ofRuntime = nullptr;
  void* ofDriver = nullptr;
  void* lookup = nullptr;
  ASSERT_EQ(cudaGetDriverEntryPoint("cuGetProcAddress", &lookup, 0, &status), kSuccess);
  ASSERT_NE(lookup, nullptr);
  const auto find = reinterpret_cast<int (*)(const char*, void**, int, std::uint64_t, int*)>(lookup);
  // It has a newer form in CUDA 13.
  ASSERT_EQ(cudaGetDriverEntryPoint("cuCtxSynchronize", &ofRuntime, 0, &status), kSuccess);
  ASSERT_EQ(find("cuCtxSynchronize", &ofDriver, 12090, 0, &status), kSuccess);
  EXPECT_EQ(ofRuntime, ofDriver);
  ASSERT_EQ(find("cuCtxSynchronize", &ofDriver, 13000, 0, &status), kSuccess);
  EXPECT_NE(ofRuntime, ofDriver);
}

}  // namespace
}  // namespace tutti::softgpu::cuda12::test
