#include "bench/world.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

namespace bench {
namespace {

/// The larger of the two buffers of every collective is the nominal size, rounded up to one element per rank.
std::size_t bufferBytes(const Options& o) {
  return o.maxBytes + 64 * static_cast<std::size_t>(o.ranks());
}

Shared* mapShared(int threads) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("mmap of the shared page", std::strerror(errno), __FILE__, __LINE__);
  auto* shared = new (memory) Shared();
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes, static_cast<unsigned>(threads));
  pthread_barrierattr_destroy(&attributes);
  return shared;
}

void runProcess(const Options& options, Shared* shared, int process, void (*body)(Worker&, void*), void* context) {
  if (options.enter) options.enter(process);
  if (process == 0) NCCL_CHECK(ncclGetUniqueId(&shared->id));
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(options.threads));
  for (int t = 0; t < options.threads; ++t) {
    threads.emplace_back([&options, shared, process, t, body, context] {
      pthread_barrier_wait(&shared->barrier);  // the id is there
      Worker worker(options, shared, process, t);
      body(worker, context);
    });
  }
  for (auto& thread : threads) thread.join();
}

/// How long the others of a process that has failed may take to say what they have seen of it.
constexpr auto kLastWords = std::chrono::seconds(5);

void say(pid_t pid, int status) {
  if (!WIFSIGNALED(status)) return;
  std::fprintf(stderr, "process %d was ended by signal %d (%s)\n", pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
}

/// Waits for all children. When one fails the rest would perhaps wait for it without end: they have a while to fail as
/// well, and are then ended.
int supervise(std::vector<pid_t> children) {
  using Clock = std::chrono::steady_clock;
  int exitCode = 0;
  Clock::time_point until{};
  while (!children.empty()) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, exitCode == 0 ? 0 : WNOHANG);
    if (pid < 0) return 1;
    if (pid == 0) {
      if (Clock::now() >= until) {
        for (const pid_t child : children) kill(child, SIGKILL);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    std::erase(children, pid);
    if (exitCode != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) continue;
    say(pid, status);
    exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    until = Clock::now() + kLastWords;
  }
  return exitCode;
}

}  // namespace

void die(const char* what, const char* why, const char* file, int line) {
  char host[64] = "?";
  gethostname(host, sizeof host - 1);
  std::fflush(stdout);
  std::fprintf(stderr, "%s pid %d: %s:%d: %s: %s\n", host, getpid(), file, line, what, why);
  std::fflush(stderr);
  _exit(1);
}

void dieNccl(const char* what, ncclResult_t result, const char* file, int line) {
  const std::string why = std::string(ncclGetErrorString(result)) + " / " + ncclGetLastError(nullptr);
  die(what, why.c_str(), file, line);
}

Worker::Worker(const Options& options, Shared* shared, int process, int thread) : options_(options), shared_(shared) {
  int deviceCount = 0;
  CUDA_CHECK(cudaGetDeviceCount(&deviceCount));
  if (deviceCount == 0)
    die("cudaGetDeviceCount", "no CUDA device; without a GPU start with softgpu-run", __FILE__, __LINE__);
  ranks_.resize(static_cast<std::size_t>(options.gpus));
  const int first = (process * options.threads + thread) * options.gpus;
  for (int g = 0; g < options.gpus; ++g) {
    Rank& r = ranks_[static_cast<std::size_t>(g)];
    r.rank = first + g;
    r.device = r.rank % deviceCount;
    CUDA_CHECK(cudaSetDevice(r.device));
    CUDA_CHECK(cudaMalloc(&r.send, bufferBytes(options)));
    CUDA_CHECK(cudaMalloc(&r.recv, bufferBytes(options)));
    CUDA_CHECK(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, r.device));
    auto& line = shared->devices[static_cast<std::size_t>(r.rank)];
    line.pid = getpid();
    line.device = r.device;
    line.busId = properties.pciBusID;
    std::snprintf(line.name, sizeof line.name, "%.63s", properties.name);
    gethostname(line.host, sizeof line.host - 1);
  }
  NCCL_CHECK(ncclGroupStart());
  for (Rank& r : ranks_) {
    CUDA_CHECK(cudaSetDevice(r.device));
    NCCL_CHECK(ncclCommInitRank(&r.comm, options.ranks(), shared->id, r.rank));
  }
  NCCL_CHECK(ncclGroupEnd());
}

Worker::~Worker() {
  barrier();  // nobody leaves while another still measures
  for (Rank& r : ranks_) {
    cudaSetDevice(r.device);
    ncclCommDestroy(r.comm);
    cudaStreamDestroy(r.stream);
    cudaFree(r.send);
    cudaFree(r.recv);
  }
}

void Worker::synchronize() {
  for (Rank& r : ranks_) {
    CUDA_CHECK(cudaSetDevice(r.device));
    CUDA_CHECK(cudaStreamSynchronize(r.stream));
    ncclResult_t state = ncclSuccess;
    NCCL_CHECK(ncclCommGetAsyncError(r.comm, &state));
    if (state != ncclSuccess) dieNccl("asynchronous error of a communicator", state, __FILE__, __LINE__);
  }
}

int runWorld(const Options& options, void (*body)(Worker&, void*), void* context) {
  if (options.ranks() > kMaxRanks) {
    std::fprintf(stderr, "%d ranks: at most %d\n", options.ranks(), kMaxRanks);
    return 2;
  }
  Shared* shared = mapShared(options.processes * options.threads);
  if (options.processes == 1) {
    runProcess(options, shared, 0, body, context);
    return shared->wrong == 0 ? 0 : 1;
  }
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int p = 0; p < options.processes; ++p) {
    const pid_t pid = fork();
    if (pid < 0) die("fork", std::strerror(errno), __FILE__, __LINE__);
    if (pid == 0) {
      runProcess(options, shared, p, body, context);
      std::fflush(nullptr);
      _exit(0);
    }
    children.push_back(pid);
  }
  const int exitCode = supervise(std::move(children));
  return exitCode != 0 ? exitCode : (shared->wrong == 0 ? 0 : 1);
}

}  // namespace bench
