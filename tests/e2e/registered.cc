// Ranks whose network, a test plugin, has to know the memory that it sends from: what it was told, and from where it
// was asked to send, while the application registers buffers and captures graphs.
//
//   registered CASE RANKS    ranks are threads; with RANK set, a process is one rank
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "cuda_runtime.h"
#include "nccl.h"
#include "plugin/network/test_net_memory.h"

#define CUDA(call) CHECK(call, cudaSuccess)
#define NCCL(call) CHECK(call, ncclSuccess)
#define EXPECT(condition) CHECK(static_cast<bool>(condition), true)

namespace {

constexpr std::size_t kCount = 300'000;  // of a buffer, a little more than nine slots
constexpr std::size_t kBytes = kCount * sizeof(int);
constexpr std::size_t kLeast = 4096;  // shorter steps are not worth an offer

const TestNetMemory* network = nullptr;

struct Rank {
  int rank = 0;
  int size = 1;
  ncclUniqueId id{};
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  int* out = nullptr;
  int* in = nullptr;  ///< room for a buffer of each rank

  int next() const { return (rank + 1) % size; }
  int previous() const { return (rank + size - 1) % size; }
  std::size_t inBytes() const { return kBytes * static_cast<std::size_t>(size); }
  std::size_t sentInPlace() const { return network->bytesFrom(out, kBytes) + network->bytesFrom(in, inBytes()); }
};

int valueOf(int rank, std::size_t index, int round) {
  return rank * 1'000'003 + static_cast<int>(index) + round * 17;
}

void fill(const Rank& r, int round) {
  std::vector<int> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = valueOf(r.rank, i, round);
  CUDA(cudaMemcpy(r.out, values.data(), kBytes, cudaMemcpyHostToDevice));
  CUDA(cudaMemset(r.in, 0xff, r.inBytes()));
}

/// The n-th buffer in `in` is what `from` has sent.
void expectBlock(const Rank& r, std::size_t n, int from, int round) {
  std::vector<int> values(kCount);
  CUDA(cudaStreamSynchronize(r.stream));
  CUDA(cudaMemcpy(values.data(), r.in + n * kCount, kBytes, cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < kCount; ++i) CHECK(values[i], valueOf(from, i, round));
}

void exchange(const Rank& r) {
  NCCL(ncclGroupStart());
  NCCL(ncclSend(r.out, kCount, ncclInt32, r.next(), r.comm, r.stream));
  NCCL(ncclRecv(r.in, kCount, ncclInt32, r.previous(), r.comm, r.stream));
  NCCL(ncclGroupEnd());
}

void gather(const Rank& r) {
  NCCL(ncclAllGather(r.out, r.in, kCount, ncclInt32, r.comm, r.stream));
}

void expectGathered(const Rank& r, int round) {
  for (int from = 0; from < r.size; ++from) expectBlock(r, static_cast<std::size_t>(from), from, round);
}

/// Nobody is ahead of the others, with an operation whose steps are short.
void meet(const Rank& r) {
  static thread_local int* word = nullptr;
  if (word == nullptr) CUDA(cudaMalloc(reinterpret_cast<void**>(&word), sizeof(int)));
  NCCL(ncclAllReduce(word, word, 1, ncclInt32, ncclMax, r.comm, r.stream));
  CUDA(cudaStreamSynchronize(r.stream));
}

/// From here on the network's record has what this process's ranks send.
void watch(const Rank& r) {
  meet(r);
  if (r.rank == 0 || std::getenv("RANK") != nullptr) network->watchSent();
  meet(r);
}

struct Handles {
  void* out = nullptr;
  void* in = nullptr;
};

Handles enter(const Rank& r) {
  Handles handles;
  NCCL(ncclCommRegister(r.comm, r.out, kBytes, &handles.out));
  NCCL(ncclCommRegister(r.comm, r.in, r.inBytes(), &handles.in));
  return handles;
}

void leave(const Rank& r, const Handles& handles) {
  NCCL(ncclCommDeregister(r.comm, handles.out));
  NCCL(ncclCommDeregister(r.comm, handles.in));
}

std::size_t known(const Rank& r) {
  return network->registrationsOf(r.out, kBytes) + network->registrationsOf(r.in, r.inBytes());
}
std::size_t everKnown(const Rank& r) {
  return network->everRegistered(r.out, kBytes) + network->everRegistered(r.in, r.inBytes());
}

/// Until the library has noticed that a graph is gone.
void expectUnknownSoon(const Rank& r) {
  for (int i = 0; i < 500 && known(r) > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT(known(r) == 0);
}

cudaGraphExec_t capture(const Rank& r, const std::function<void()>& calls) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  CUDA(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
  calls();
  CUDA(cudaStreamEndCapture(r.stream, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  CUDA(cudaGraphDestroy(graph));
  return exec;
}

void replay(const Rank& r, cudaGraphExec_t exec, int rounds, const std::function<void(int)>& expect) {
  for (int round = 0; round < rounds; ++round) {
    fill(r, round);
    CUDA(cudaGraphLaunch(exec, r.stream));
    expect(round);
  }
}

// ---- cases

/// A rank's message goes from its buffer, and the network forgets the buffer with its registration.
void messages(const Rank& r) {
  const Handles handles = enter(r);
  EXPECT(everKnown(r) == 0);
  watch(r);
  for (int round = 0; round < 3; ++round) {
    fill(r, round);
    exchange(r);
    expectBlock(r, 0, r.previous(), round);
  }
  EXPECT(network->bytesFrom(r.out, kBytes) == 3 * kBytes);
  EXPECT(network->registrationsOf(r.out, kBytes) > 0);
  EXPECT(network->everRegistered(r.out, kBytes) == network->registrationsOf(r.out, kBytes));
  leave(r, handles);
  EXPECT(known(r) == 0);
  const std::size_t before = network->bytesFrom(r.out, kBytes);
  fill(r, 3);
  exchange(r);
  expectBlock(r, 0, r.previous(), 3);
  EXPECT(network->bytesFrom(r.out, kBytes) == before);
  meet(r);
}

/// Collectives that only copy: nothing goes through slots. Of reductions, the inputs and the results do not.
void collectives(const Rank& r) {
  const Handles handles = enter(r);
  watch(r);
  for (int round = 0; round < 3; ++round) {
    fill(r, round);
    gather(r);
    expectGathered(r, round);
    fill(r, round + 10);
    const int root = round % r.size;
    NCCL(ncclBroadcast(r.out, r.in, kCount, ncclInt32, root, r.comm, r.stream));
    expectBlock(r, 0, root, round + 10);
  }
  static std::atomic<std::size_t> inPlace{0};  // of all ranks of this process
  inPlace += r.sentInPlace();
  meet(r);
  EXPECT(inPlace > 0 && inPlace == network->bytesSent(kLeast));
  meet(r);
  fill(r, 0);
  NCCL(ncclAllReduce(r.out, r.in, kCount, ncclInt32, ncclSum, r.comm, r.stream));
  std::vector<int> values(kCount);
  CUDA(cudaStreamSynchronize(r.stream));
  CUDA(cudaMemcpy(values.data(), r.in, kBytes, cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < kCount; ++i) {
    int sum = 0;
    for (int from = 0; from < r.size; ++from) sum += valueOf(from, i, 0);
    CHECK(values[i], sum);
  }
  leave(r, handles);
  EXPECT(known(r) == 0);
}

/// Buffers that nobody registers, and such that a setting keeps from it, are not told to the network.
void slots(const Rank& r) {
  Handles handles;
  const bool kept = std::getenv("NCCL_LOCAL_REGISTER") != nullptr || std::getenv("NCCL_P2P_USE_CUDA_MEMCPY") != nullptr;
  if (kept) handles = enter(r);
  EXPECT(handles.out == nullptr && handles.in == nullptr);
  watch(r);
  fill(r, 0);
  exchange(r);
  expectBlock(r, 0, r.previous(), 0);
  gather(r);
  expectGathered(r, 0);
  EXPECT(r.sentInPlace() == 0 && everKnown(r) == 0);
  leave(r, handles);
}

/// The network does not take them: everything goes through slots.
void refused(const Rank& r) {
  network->refuse(r.out, kBytes);
  network->refuse(r.in, r.inBytes());
  const Handles handles = enter(r);
  watch(r);
  for (int round = 0; round < 3; ++round) {
    fill(r, round);
    exchange(r);
    expectBlock(r, 0, r.previous(), round);
    gather(r);
    expectGathered(r, round);
  }
  EXPECT(r.sentInPlace() == 0 && everKnown(r) == 0 && network->refusals() > 0);
  leave(r, handles);
}

/// A buffer is taken back while its message is under way, or has not begun.
void early(const Rank& r) {
  for (int round = 0; round < 8; ++round) {
    const Handles handles = enter(r);
    fill(r, round);
    if (round % 2 == 0) meet(r);
    if (r.rank % 2 == 0) NCCL(ncclSend(r.out, kCount, ncclInt32, r.rank + 1, r.comm, r.stream));
    if (r.rank % 2 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(round));
    if (r.rank % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(round / 2));
    leave(r, handles);
    if (r.rank % 2 == 1) {
      NCCL(ncclRecv(r.in, kCount, ncclInt32, r.rank - 1, r.comm, r.stream));
      expectBlock(r, 0, r.rank - 1, round);
    }
    CUDA(cudaStreamSynchronize(r.stream));
    EXPECT(known(r) == 0);
  }
}

/// What a graph uses is known to the network until the graph ends.
void graphs(const Rank& r) {
  const bool registers = std::getenv("NCCL_GRAPH_REGISTER") == nullptr;
  fill(r, 0);
  exchange(r);  // connects
  gather(r);
  CUDA(cudaStreamSynchronize(r.stream));
  cudaGraphExec_t exchanges = capture(r, [&] { exchange(r); });
  cudaGraphExec_t gathers = capture(r, [&] { gather(r); });
  watch(r);
  replay(r, exchanges, 3, [&](int round) { expectBlock(r, 0, r.previous(), round); });
  EXPECT(network->bytesFrom(r.out, kBytes) == (registers ? 3 * kBytes : 0));
  replay(r, gathers, 3, [&](int round) { expectGathered(r, round); });
  EXPECT((r.sentInPlace() > 3 * kBytes) == registers && (known(r) > 0) == registers);
  CUDA(cudaGraphExecDestroy(exchanges));
  replay(r, gathers, 2, [&](int round) { expectGathered(r, round); });
  meet(r);
  CUDA(cudaGraphExecDestroy(gathers));
  expectUnknownSoon(r);
  // What is not captured is not registered.
  const std::size_t before = r.sentInPlace();
  fill(r, 0);
  exchange(r);
  expectBlock(r, 0, r.previous(), 0);
  EXPECT(r.sentInPlace() == before);
  meet(r);
}

/// Graphs whose buffers are taken back go on through buffers of the library, or have registrations of their own.
void stale(const Rank& r) {
  const Handles handles = enter(r);
  cudaGraphExec_t exchanges = capture(r, [&] { exchange(r); });
  replay(r, exchanges, 2, [&](int round) { expectBlock(r, 0, r.previous(), round); });
  meet(r);
  leave(r, handles);
  replay(r, exchanges, 3, [&](int round) { expectBlock(r, 0, r.previous(), round); });
  NCCL(ncclCommSuspend(r.comm, NCCL_SUSPEND_MEM));
  EXPECT(known(r) == 0);
  NCCL(ncclCommResume(r.comm));
  replay(r, exchanges, 2, [&](int round) { expectBlock(r, 0, r.previous(), round); });
  meet(r);
  CUDA(cudaGraphExecDestroy(exchanges));
}

/// Replays after the end of the communicator, whose connections the next one closes.
void orphans(Rank& r) {
  cudaGraphExec_t exchanges = capture(r, [&] { exchange(r); });
  replay(r, exchanges, 1, [&](int round) { expectBlock(r, 0, r.previous(), round); });
  meet(r);
  NCCL(ncclCommDestroy(r.comm));
  r.comm = nullptr;
  replay(r, exchanges, 2, [&](int round) { expectBlock(r, 0, r.previous(), round); });
  EXPECT(network->registrations() > 0);
  CUDA(cudaGraphExecDestroy(exchanges));
}

/// A message that nobody takes: after the abort the network knows the buffer no more.
void aborted(Rank& r) {
  enter(r);
  fill(r, 0);
  exchange(r);
  expectBlock(r, 0, r.previous(), 0);
  meet(r);
  if (r.rank == 0) NCCL(ncclSend(r.out, kCount, ncclInt32, 1, r.comm, r.stream));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  NCCL(ncclCommAbort(r.comm));
  r.comm = nullptr;
  EXPECT(known(r) == 0);
}

/// What graphs that have just ended had of their communicators is freed by the next one that comes or goes.
void freeAbandoned() {
  for (int i = 0; i < 500 && network->registrations() > 0; ++i) {
    ncclComm_t alone = nullptr;
    const int device = 0;
    NCCL(ncclCommInitAll(&alone, 1, &device));
    NCCL(ncclCommDestroy(alone));
  }
}

void runRank(const std::string& name, Rank r) {
  static const std::map<std::string, std::function<void(Rank&)>> kCases{
      {"messages", messages}, {"collectives", collectives}, {"slots", slots}, {"refused", refused},
      {"early", early},       {"graphs", graphs},           {"stale", stale}, {"orphans", orphans},
      {"aborted", aborted},
  };
  CUDA(cudaSetDevice(r.rank));
  CUDA(cudaMalloc(reinterpret_cast<void**>(&r.out), kBytes));
  CUDA(cudaMalloc(reinterpret_cast<void**>(&r.in), r.inBytes()));
  CUDA(cudaStreamCreate(&r.stream));
  NCCL(ncclCommInitRank(&r.comm, r.size, r.id, r.rank));
  kCases.at(name)(r);
  if (r.comm != nullptr) NCCL(ncclCommDestroy(r.comm));
  std::printf("[Rank %d] Success\n", r.rank);
}

}  // namespace

int main(int argc, char** argv) {
  EXPECT(argc == 3);
  void* const plugin = dlopen(std::getenv("NCCL_NET_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
  EXPECT(plugin != nullptr);
  network = reinterpret_cast<TestNetMemoryFunction*>(dlsym(plugin, "testNetMemory"))();
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  const int size = std::atoi(argv[2]);
  const char* const own = std::getenv("RANK");
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    if (own == nullptr || std::atoi(own) == rank) {
      threads.emplace_back(runRank, argv[1], Rank{.rank = rank, .size = size, .id = id});
    }
  }
  for (std::thread& thread : threads) thread.join();
  freeAbandoned();
  EXPECT(network->faults() == 0);
  EXPECT(network->registrations() == 0);
  return 0;
}
