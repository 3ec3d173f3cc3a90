// One rank that does what it is told, and then ends in some way: for what its peers make of that.
//
//   exits RANK SIZE STEP…       (NCCL_COMM_ID names the root)
//
// Steps before "init" come before the communicator is made, the others after it:
//   init              ncclCommInitRank
//   reduce            ncclAllReduce, and waits for it            launch         the same without waiting
//   send:PEER, recv:PEER                   a message, and waits for it
//   graph             records an AllReduce, replays it, and waits for it
//   replay            replays it once more, and waits for it    play           the same without waiting
//   busy:MS           keeps the stream busy for so long; returns at once
//   wait              until what was launched is done or the communicator has failed
//   count:N           floats of an operation from now on, at most 4096, which it is at first
//   comm:N            the steps that follow are of communicator N, 0 to 3; at first of 0
//   both              does nothing, but says so
//   watch             until the communicator has failed; says its error and goes on
//   abort             ncclCommAbort
//   device            chooses its device and has memory there, which init would do otherwise
//   threads:N         becomes another user, who can have no more than N threads besides those that are; needs root
//   files:N           no more than N descriptors can be opened besides those that are
//   state             what ncclCommGetAsyncError says
//   finalize          ncclCommFinalize
//   destroy           ncclCommDestroy
//   file:PATH         waits until that file is there
//   handler:STEP      an exit handler that takes that step
//   static:STEP       a destructor of a static object, made before main(), that takes that step
//   fork              a child that calls exit(), and waits for it
//   thread:CODE       a thread that calls exit(CODE) in a quarter of a second
//   exit:CODE, _exit:CODE, return:CODE     ends the process
// Each says "STEP RESULT after N ms TEXT" when it is done. The first error is the end: after ncclCommAbort, with exit
// code 42.
#include <dirent.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuda_runtime_api.h"
#include "nccl.h"

namespace {

constexpr std::size_t kMostCount = 1 << 12;

void take(const std::string& step);

/// Outlives main(): its destructor runs with those of an application's static objects.
struct Late {
  std::string step;
  ~Late() {
    if (!step.empty()) take(step);
  }
};

struct Rank {
  int rank = 0;
  int size = 1;
  ncclComm_t comm = nullptr;
  std::array<ncclComm_t, 4> others{};  // those that are not the current one; its own place is stale
  std::size_t current = 0;
  std::size_t count = kMostCount;
  cudaStream_t stream = nullptr;
  float* data = nullptr;
  cudaGraphExec_t graph = nullptr;
};

Rank me;
Late late;
std::string handled;
bool exitsElsewhere = false;  // another thread is about to call exit()

ncclResult_t stateOf(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
  return asked != ncclSuccess ? asked : state;
}

/// As frameworks wait.
ncclResult_t waitWatching() {
  while (cudaStreamQuery(me.stream) == cudaErrorNotReady) {
    if (const ncclResult_t state = stateOf(me.comm); state != ncclSuccess) return state;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return stateOf(me.comm);
}

ncclResult_t useDevice() {
  if (cudaSetDevice(me.rank) != cudaSuccess) return ncclSystemError;
  if (me.stream == nullptr && cudaStreamCreate(&me.stream) != cudaSuccess) return ncclSystemError;
  if (me.data == nullptr && cudaMalloc(reinterpret_cast<void**>(&me.data), kMostCount * sizeof(float)) != cudaSuccess)
    return ncclSystemError;
  return ncclSuccess;
}

ncclResult_t init() {
  ncclUniqueId id;
  if (const ncclResult_t chosen = useDevice(); chosen != ncclSuccess) return chosen;
  if (const ncclResult_t made = ncclGetUniqueId(&id); made != ncclSuccess) return made;
  return ncclCommInitRank(&me.comm, me.size, id, me.rank);
}

ncclResult_t launch() {
  return ncclAllReduce(me.data, me.data, me.count, ncclFloat, ncclSum, me.comm, me.stream);
}

ncclResult_t play() {
  return cudaGraphLaunch(me.graph, me.stream) == cudaSuccess ? ncclSuccess : ncclSystemError;
}

ncclResult_t replay() {
  const ncclResult_t played = play();
  return played == ncclSuccess ? waitWatching() : played;
}

ncclResult_t record() {
  cudaGraph_t graph = nullptr;
  if (cudaStreamBeginCapture(me.stream, cudaStreamCaptureModeGlobal) != cudaSuccess) return ncclSystemError;
  const ncclResult_t launched = launch();
  const bool made = cudaStreamEndCapture(me.stream, &graph) == cudaSuccess &&
                    cudaGraphInstantiate(&me.graph, graph, 0) == cudaSuccess;
  if (launched != ncclSuccess || !made) return launched != ncclSuccess ? launched : ncclSystemError;
  return replay();
}

ncclResult_t forkAndExit() {
  const pid_t child = ::fork();
  if (child == 0) std::exit(0);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? ncclSuccess : ncclSystemError;
}

ncclResult_t waitForFile(const std::string& path) {
  while (::access(path.c_str(), F_OK) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return ncclSuccess;
}

/// Keeps the stream busy for so many milliseconds; returns at once.
ncclResult_t occupyStream(int ms) {
  const auto sleep = [](void* bound) {
    std::this_thread::sleep_for(std::chrono::milliseconds(reinterpret_cast<std::intptr_t>(bound)));
  };
  void* const bound = reinterpret_cast<void*>(static_cast<std::intptr_t>(ms));
  return cudaLaunchHostFunc(me.stream, sleep, bound) == cudaSuccess ? ncclSuccess : ncclSystemError;
}

ncclResult_t use(std::size_t comm) {
  me.others.at(me.current) = me.comm;
  me.current = comm;
  me.comm = me.others.at(comm);
  return ncclSuccess;
}

/// Waits for an error, which is what is expected.
ncclResult_t watch() {
  const auto began = std::chrono::steady_clock::now();
  ncclResult_t state = ncclSuccess;
  while (state == ncclSuccess || state == ncclInProgress) {
    state = stateOf(me.comm);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  const auto took = std::chrono::steady_clock::now() - began;
  std::printf("watched %d after %ld ms %s\n", state,
              static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()),
              ncclGetLastError(me.comm));
  return ncclSuccess;
}

ncclResult_t abortCurrent() {
  return ncclCommAbort(std::exchange(me.comm, nullptr));
}

ncclResult_t limitFiles(rlim_t more) {
  DIR* const open = ::opendir("/proc/self/fd");
  if (open == nullptr) return ncclSystemError;
  rlim_t end = 0;
  while (const dirent* one = ::readdir(open)) end = std::max(end, static_cast<rlim_t>(std::atoi(one->d_name)));
  ::closedir(open);
  const rlimit limit{end + more, end + more};  // the highest was the folder itself
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? ncclSuccess : ncclSystemError;
}

/// Threads are counted by user, and root's are not: this process becomes a user that nobody else is.
ncclResult_t limitThreads(rlim_t more) {
  DIR* const all = ::opendir("/proc/self/task");
  if (all == nullptr) return ncclSystemError;
  rlim_t most = more;
  while (const dirent* one = ::readdir(all)) most += one->d_name[0] == '.' ? 0 : 1;
  ::closedir(all);
  const rlimit limit{most, most};
  const auto user = static_cast<uid_t>(1'000'000 + ::getpid());
  const bool done =
      ::setrlimit(RLIMIT_NPROC, &limit) == 0 && ::setresuid(user, user, user) == 0 && ::prctl(PR_SET_DUMPABLE, 1L) == 0;
  return done ? ncclSuccess : ncclSystemError;
}

ncclResult_t exitOnThread(int code) {
  exitsElsewhere = true;
  std::thread([code] {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    std::exit(code);
  }).detach();
  return ncclSuccess;
}

ncclResult_t afterwards(ncclResult_t launched) {
  return launched != ncclSuccess ? launched : waitWatching();
}

ncclResult_t run(const std::string& name, const std::string& value) {
  if (name == "init") return init();
  if (name == "launch") return launch();
  if (name == "reduce") return afterwards(launch());
  if (name == "send") return afterwards(ncclSend(me.data, me.count, ncclFloat, std::stoi(value), me.comm, me.stream));
  if (name == "recv") return afterwards(ncclRecv(me.data, me.count, ncclFloat, std::stoi(value), me.comm, me.stream));
  if (name == "graph") return record();
  if (name == "replay") return replay();
  if (name == "play") return play();
  if (name == "wait") return waitWatching();
  if (name == "state") return stateOf(me.comm);
  if (name == "finalize") return ncclCommFinalize(me.comm);
  if (name == "destroy") return ncclCommDestroy(me.comm);
  if (name == "count") return me.count = std::stoul(value), ncclSuccess;
  if (name == "comm") return use(std::stoul(value));
  if (name == "both") return ncclSuccess;
  if (name == "watch") return watch();
  if (name == "abort") return abortCurrent();
  if (name == "device") return useDevice();
  if (name == "threads") return limitThreads(std::stoul(value));
  if (name == "files") return limitFiles(std::stoul(value));
  if (name == "busy") return occupyStream(std::stoi(value));
  if (name == "file") return waitForFile(value);
  if (name == "fork") return forkAndExit();
  if (name == "thread") return exitOnThread(std::stoi(value));
  if (name == "static") return late.step = value, ncclSuccess;
  if (name == "exit") std::exit(std::stoi(value));
  if (name == "_exit") ::_exit(std::stoi(value));
  if (name != "handler") return ncclInvalidArgument;
  handled = value;
  return std::atexit([] { take(handled); }) == 0 ? ncclSuccess : ncclSystemError;
}

void take(const std::string& step) {
  const std::size_t colon = step.find(':');
  const std::string value = colon == std::string::npos ? "" : step.substr(colon + 1);
  const auto began = std::chrono::steady_clock::now();
  const bool goesOn = !exitsElsewhere;
  const ncclResult_t result = run(step.substr(0, colon), value);
  const auto took = std::chrono::steady_clock::now() - began;
  while (exitsElsewhere && !goesOn) ::pause();  // a process must not call exit() twice
  std::printf("%s %d after %ld ms %s\n", step.c_str(), result,
              static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()),
              result == ncclSuccess ? "" : ncclGetLastError(me.comm));
  if (result == ncclSuccess) return;
  const bool aborted = me.comm == nullptr || ncclCommAbort(me.comm) == ncclSuccess;
  ::_exit(aborted ? 42 : 43);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  me.rank = std::atoi(argv[1]);
  me.size = std::atoi(argv[2]);
  std::printf("pid %d\n", getpid());
  for (int i = 3; i < argc; ++i) {
    const std::string step = argv[i];
    if (step.rfind("return:", 0) == 0) return std::stoi(step.substr(7));
    take(step);
  }
  return 0;
}
