// A program that trains with CUDA graphs, reduced to its calls: records collectives and messages, replays them between
// plain calls, keeps several graphs, destroys its communicator before the last of them; rank 0 ends without waiting for
// the others. RANK and SIZE (2 or more) from the environment, the root's address from NCCL_COMM_ID.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "check.h"
#include "cuda_runtime.h"
#include "nccl.h"

namespace {

#define CUDA(call) CHECK(call, cudaSuccess)
#define NCCL(call) CHECK(call, ncclSuccess)

constexpr std::size_t kCount = 40'000;
constexpr int kSteps = 50;

struct Rank {
  int rank;
  int size;
  ncclComm_t comm;
  cudaStream_t stream;
};

float* newBuffer(float value) {
  float* buffer = nullptr;
  CUDA(cudaMalloc(reinterpret_cast<void**>(&buffer), kCount * sizeof(float)));
  const std::vector<float> values(kCount, value);
  CUDA(cudaMemcpy(buffer, values.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  return buffer;
}

void expect(const char* what, const Rank& r, const float* buffer, float value) {
  std::vector<float> values(kCount);
  CUDA(cudaStreamSynchronize(r.stream));
  CUDA(cudaMemcpy(values.data(), buffer, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < kCount; ++i) {
    if (values[i] == value) continue;
    std::printf("failed: %s: element %zu is %g instead of %g\n", what, i, static_cast<double>(values[i]),
                static_cast<double>(value));
    std::exit(EXIT_FAILURE);
  }
}

cudaGraph_t record(const Rank& r, const std::function<void()>& calls) {
  cudaGraph_t graph = nullptr;
  CUDA(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeGlobal));
  calls();
  CUDA(cudaStreamEndCapture(r.stream, &graph));
  return graph;
}

cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}

/// Everybody hands its buffer to the next rank.
void passOn(const Rank& r, const float* out, float* in) {
  NCCL(ncclGroupStart());
  NCCL(ncclSend(out, kCount, ncclFloat, (r.rank + 1) % r.size, r.comm, r.stream));
  NCCL(ncclRecv(in, kCount, ncclFloat, (r.rank + r.size - 1) % r.size, r.comm, r.stream));
  NCCL(ncclGroupEnd());
}

/// Rank 0 sends its buffer to rank 1.
void passOne(const Rank& r, const float* out, float* in) {
  NCCL(ncclGroupStart());
  if (r.rank == 0) NCCL(ncclSend(out, kCount, ncclFloat, 1, r.comm, r.stream));
  if (r.rank == 1) NCCL(ncclRecv(in, kCount, ncclFloat, 0, r.comm, r.stream));
  NCCL(ncclGroupEnd());
}

void run(Rank& r) {
  const float ranks = static_cast<float>(r.size);
  const float previous = static_cast<float>((r.rank + r.size - 1) % r.size);
  float* const mine = newBuffer(static_cast<float>(r.rank));
  float* const passed = newBuffer(-1);
  float* const sum = newBuffer(1);
  float* const average = newBuffer(-1);

  // The first use of messages, hence of their connections, is recorded.
  cudaGraph_t ringGraph = record(r, [&] { passOn(r, mine, passed); });
  cudaGraphExec_t ring = instantiate(ringGraph);
  cudaGraph_t reduceGraph = record(r, [&] {
    NCCL(ncclAllReduce(passed, average, kCount, ncclFloat, ncclAvg, r.comm, r.stream));
    NCCL(ncclAllReduce(sum, sum, kCount, ncclFloat, ncclSum, r.comm, r.stream));
  });
  cudaGraphExec_t reduce = instantiate(reduceGraph);
  cudaGraphExec_t again = instantiate(reduceGraph);
  CUDA(cudaGraphDestroy(reduceGraph));
  cudaGraph_t oneGraph = record(r, [&] { passOne(r, sum, passed); });
  cudaGraphExec_t one = instantiate(oneGraph);

  const float mean = (ranks - 1) / 2;
  for (cudaGraphExec_t exec : {ring, reduce, ring, again, reduce}) CUDA(cudaGraphLaunch(exec, r.stream));
  NCCL(ncclBroadcast(mine, mine, kCount, ncclFloat, 0, r.comm, r.stream));
  expect("messages", r, passed, previous);
  expect("average", r, average, mean);
  expect("sum", r, sum, ranks * ranks * ranks);
  expect("broadcast after graphs", r, mine, 0);

  for (int step = 0; step < kSteps; ++step) {
    CUDA(cudaGraphLaunch(ring, r.stream));
    NCCL(ncclAllReduce(passed, average, kCount, ncclFloat, ncclMax, r.comm, r.stream));
  }
  expect("messages of zeros", r, passed, 0);
  expect("maximum after graphs", r, average, 0);
  CUDA(cudaGraphExecDestroy(reduce));

  NCCL(ncclCommDestroy(r.comm));
  CUDA(cudaGraphLaunch(ring, r.stream));
  CUDA(cudaStreamSynchronize(r.stream));
  // Rank 0 leaves with what it has sent, before rank 1 has asked for it.
  if (r.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CUDA(cudaGraphLaunch(one, r.stream));
  if (r.rank == 1) expect("the last message", r, passed, ranks * ranks * ranks);
  CUDA(cudaStreamSynchronize(r.stream));
  if (r.rank == 0) return;
  CUDA(cudaGraphExecDestroy(one));
  CUDA(cudaGraphDestroy(oneGraph));
  CUDA(cudaGraphExecDestroy(ring));
  CUDA(cudaGraphDestroy(ringGraph));
  CUDA(cudaGraphExecDestroy(again));
  for (float* buffer : {mine, passed, sum, average}) CUDA(cudaFree(buffer));
}

}  // namespace

int main() {
  Rank r{std::atoi(std::getenv("RANK")), std::atoi(std::getenv("SIZE")), nullptr, nullptr};
  ncclUniqueId id;
  CUDA(cudaSetDevice(r.rank));
  CUDA(cudaStreamCreate(&r.stream));
  NCCL(ncclGetUniqueId(&id));
  NCCL(ncclCommInitRank(&r.comm, r.size, id, r.rank));
  run(r);
  std::printf("[Rank %d] Success\n", r.rank);
  return 0;
}
