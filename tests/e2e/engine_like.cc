// Uses the library as a framework's engine of distributed training does: communicators that do not block, polled by
// their state; the first made eagerly, one more by split for each new group, by all ranks; a watchdog thread that polls
// them all and aborts one whose work takes too long while the main thread waits; pools of ncclMemAlloc, registered as
// segments; batches of sends and receives in groups; a phase in which memory is given back; at the end all are
// destroyed in reverse order.
//
//   engine_like RANK SIZE FOLDER        FOLDER: where the ranks exchange the unique id
//
// It is linked against a libnccl.so.2 whose functions fail (vendor_stub): ours takes its place by LD_PRELOAD.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cuda_runtime_api.h"
#include "nccl.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kCount = 4096;
constexpr auto kPatience = std::chrono::seconds(60);       // for anything that must come
constexpr auto kTimeout = std::chrono::milliseconds(500);  // of the work that never ends

struct Engine {
  int rank = 0;
  int size = 1;
  std::string folder;
  cudaStream_t stream = nullptr;
  std::vector<ncclComm_t> comms;  // in the order in which they were made
};

Engine me;

[[noreturn]] void die(const std::string& what) {
  std::printf("failed: rank %d: %s: %s\n", me.rank, what.c_str(), ncclGetLastError(nullptr));
  std::fflush(stdout);
  ::_exit(1);
}

void cuda(cudaError_t result, const char* what) {
  if (result != cudaSuccess) die(std::string(what) + " is " + cudaGetErrorString(result));
}

/// Every result but 0 and 7 is an error; 7 is waited for.
void nccl(ncclResult_t result, ncclComm_t comm, const char* what) {
  const auto end = Clock::now() + kPatience;
  while (result == ncclInProgress && comm != nullptr) {
    if (ncclCommGetAsyncError(comm, &result) != ncclSuccess) die("ncclCommGetAsyncError");
    if (Clock::now() > end) die(std::string(what) + " takes too long");
    if (result == ncclInProgress) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (result != ncclSuccess) die(std::string(what) + " is " + ncclGetErrorString(result));
}

/// Polls a communicator whatever the call returned: split answers 0 though it is still at work.
void settle(ncclComm_t comm, const char* what) {
  nccl(ncclInProgress, comm, what);
}

/// Looks after all communicators, as a thread beside the main one.
class Watchdog {
 public:
  Watchdog() : thread_([this] { run(); }) {}
  ~Watchdog() {
    ends_ = true;
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void add(ncclComm_t comm) {
    const std::lock_guard lock(mutex_);
    comms_.push_back(comm);
  }
  void remove(ncclComm_t comm) {
    const std::lock_guard lock(mutex_);
    for (ncclComm_t& one : comms_)
      if (one == comm) one = nullptr;
  }
  /// Aborts the communicator unless remove() comes in time.
  void abortAfter(ncclComm_t comm, Clock::duration time) {
    const std::lock_guard lock(mutex_);
    late_ = comm;
    deadline_ = Clock::now() + time;
  }
  bool aborted() const { return aborted_; }
  long polls() const { return polls_; }

 private:
  void run() {
    cudaSetDevice(me.rank);
    while (!ends_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const std::lock_guard lock(mutex_);
      for (const ncclComm_t comm : comms_) {
        if (comm == nullptr) continue;
        ncclResult_t state = ncclSuccess;
        if (ncclCommGetAsyncError(comm, &state) != ncclSuccess) die("the watchdog's ncclCommGetAsyncError");
        if (state != ncclSuccess && state != ncclInProgress && comm != late_) die("the watchdog finds an error");
        ++polls_;
      }
      if (late_ == nullptr || Clock::now() < deadline_) continue;
      for (ncclComm_t& one : comms_)
        if (one == late_) one = nullptr;
      if (ncclCommAbort(late_) != ncclSuccess) die("the watchdog's ncclCommAbort");
      late_ = nullptr;
      aborted_ = true;
    }
  }

  std::mutex mutex_;
  std::vector<ncclComm_t> comms_;
  ncclComm_t late_ = nullptr;
  Clock::time_point deadline_;
  std::atomic<bool> ends_{false};
  std::atomic<bool> aborted_{false};
  std::atomic<long> polls_{0};
  std::thread thread_;
};

ncclUniqueId exchangeId() {
  ncclUniqueId id;
  const std::string path = me.folder + "/id";
  if (me.rank == 0) {
    nccl(ncclGetUniqueId(&id), nullptr, "ncclGetUniqueId");
    std::ofstream(path + ".part", std::ios::binary).write(id.internal, sizeof id.internal);
    if (std::rename((path + ".part").c_str(), path.c_str()) != 0) die("rename");
    return id;
  }
  const auto end = Clock::now() + kPatience;
  while (Clock::now() < end) {
    std::ifstream file(path, std::ios::binary);
    if (file.read(id.internal, sizeof id.internal)) return id;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  die("no id has come");
}

ncclConfig_t config() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

/// The function is the preloaded library's, not that of what the program is linked against.
void checkReplaced() {
  for (const char* name : {"ncclGetUniqueId",
                           "ncclGetVersion",
                           "ncclGetErrorString",
                           "ncclGetLastError",
                           "ncclCommInitRankConfig",
                           "ncclCommGetAsyncError",
                           "ncclCommSplit",
                           "ncclCommAbort",
                           "ncclCommDestroy",
                           "ncclCommRegister",
                           "ncclCommDeregister",
                           "ncclCommCount",
                           "ncclCommUserRank",
                           "ncclCommCuDevice",
                           "ncclMemAlloc",
                           "ncclMemFree",
                           "ncclGroupStart",
                           "ncclGroupEnd",
                           "ncclSend",
                           "ncclRecv",
                           "ncclAllReduce",
                           "ncclBroadcast",
                           "ncclReduce",
                           "ncclAllGather",
                           "ncclReduceScatter",
                           "ncclRedOpCreatePreMulSum",
                           "ncclRedOpDestroy",
                           "ncclCommSuspend",
                           "ncclCommResume",
                           "ncclCommMemStats",
                           "ncclCommFinalize",
                           "ncclCommShrink",
                           "ncclCommInitRankScalable"}) {
    Dl_info found{};
    if (::dladdr(::dlsym(RTLD_DEFAULT, name), &found) == 0) die(std::string(name) + " is nowhere");
    if (std::strstr(found.dli_fname, "vendor_stub") != nullptr) die(std::string(name) + " is the stub's");
  }
}

float* newPool() {
  void* pool = nullptr;
  nccl(ncclMemAlloc(&pool, 2 * kCount * sizeof(float)), nullptr, "ncclMemAlloc");
  return static_cast<float*>(pool);
}

void fill(float* at, float value) {
  const std::vector<float> values(kCount, value);
  cuda(cudaMemcpyAsync(at, values.data(), kCount * sizeof(float), cudaMemcpyHostToDevice, me.stream), "copy");
  cuda(cudaStreamSynchronize(me.stream), "synchronize");
}

void wait(const char* what) {
  const auto end = Clock::now() + kPatience;
  while (cudaStreamQuery(me.stream) == cudaErrorNotReady) {
    if (Clock::now() > end) die(std::string(what) + " does not end");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void expect(const float* at, float value, const char* what) {
  wait(what);
  std::vector<float> values(kCount);
  cuda(cudaMemcpyAsync(values.data(), at, kCount * sizeof(float), cudaMemcpyDeviceToHost, me.stream), "copy");
  cuda(cudaStreamSynchronize(me.stream), "synchronize");
  for (const float is : values)
    if (is != value) die(std::string(what) + " gives " + std::to_string(is) + ", not " + std::to_string(value));
}

/// A batch: everybody sends to the next rank and receives from the one before.
void passOn(ncclComm_t comm, float* pool, int rank, int size) {
  fill(pool, static_cast<float>(rank));
  nccl(ncclGroupStart(), nullptr, "ncclGroupStart");
  const ncclResult_t sent = ncclSend(pool, kCount, ncclFloat, (rank + 1) % size, comm, me.stream);
  const ncclResult_t received = ncclRecv(pool + kCount, kCount, ncclFloat, (rank + size - 1) % size, comm, me.stream);
  for (const ncclResult_t one : {sent, received})
    if (one != ncclSuccess && one != ncclInProgress) die("a call in a group");
  nccl(ncclGroupEnd(), comm, "ncclGroupEnd");
  expect(pool + kCount, static_cast<float>((rank + size - 1) % size), "a batch of messages");
}

void useComm(ncclComm_t comm, float* pool) {
  int size = 0;
  int rank = 0;
  nccl(ncclCommCount(comm, &size), nullptr, "ncclCommCount");
  nccl(ncclCommUserRank(comm, &rank), nullptr, "ncclCommUserRank");
  const auto ranks = static_cast<float>(size);
  fill(pool, 1);
  nccl(ncclAllReduce(pool, pool, kCount, ncclFloat, ncclSum, comm, me.stream), comm, "ncclAllReduce");
  expect(pool, ranks, "ncclAllReduce");
  fill(pool, static_cast<float>(rank + 3));
  nccl(ncclBroadcast(pool, pool + kCount, kCount, ncclFloat, size - 1, comm, me.stream), comm, "ncclBroadcast");
  expect(pool + kCount, ranks + 2, "ncclBroadcast");
  float half = 0.5F;
  ncclRedOp_t scaled{};
  nccl(ncclRedOpCreatePreMulSum(&scaled, &half, ncclFloat, ncclScalarHostImmediate, comm), comm, "an operator");
  fill(pool, 2);
  nccl(ncclAllReduce(pool, pool, kCount, ncclFloat, scaled, comm, me.stream), comm, "a scaled ncclAllReduce");
  nccl(ncclRedOpDestroy(scaled, comm), comm, "ncclRedOpDestroy");
  expect(pool, ranks, "a scaled ncclAllReduce");
  const std::size_t part = kCount / static_cast<std::size_t>(size);
  nccl(ncclReduceScatter(pool, pool + kCount, part, ncclFloat, ncclSum, comm, me.stream), comm, "ncclReduceScatter");
  nccl(ncclAllGather(pool + kCount, pool, part, ncclFloat, comm, me.stream), comm, "ncclAllGather");
  wait("ncclAllGather");
  if (size > 1) passOn(comm, pool, rank, size);
}

/// A new group: all ranks of the parent call, those outside it without a color. Null outside.
ncclComm_t newGroup(ncclComm_t parent, bool member, int key) {
  ncclComm_t comm = nullptr;
  ncclConfig_t wanted = config();
  const ncclResult_t called = ncclCommSplit(parent, member ? 1 : NCCL_SPLIT_NOCOLOR, key, &comm, &wanted);
  nccl(called == ncclInProgress ? ncclSuccess : called, nullptr, "ncclCommSplit");
  settle(parent, "the parent of a split");
  if ((comm != nullptr) != member) die("a split gives a communicator to the wrong ranks");
  if (comm != nullptr) settle(comm, "a new group");
  return comm;
}

void splitGroups(ncclComm_t world, Watchdog& watchdog, float* pool) {
  const int half = me.size / 2;
  const std::vector<bool> members = {me.rank < half, me.rank >= half, true, me.rank == 0 || me.rank == me.size - 1};
  for (std::size_t i = 0; i < members.size(); ++i) {
    // Those who are in no group of this kind take part all the same; in the third ranks are turned round.
    const ncclComm_t comm = newGroup(world, members[i], i == 2 ? -me.rank : me.rank);
    if (comm == nullptr) continue;
    watchdog.add(comm);
    me.comms.push_back(comm);
    useComm(comm, pool);
  }
}

/// Memory is given back for a while, of all communicators, and taken again.
void sleepPhase(float* pool) {
  for (const ncclComm_t comm : me.comms) {
    nccl(ncclCommSuspend(comm, NCCL_SUSPEND_MEM), comm, "ncclCommSuspend");
    settle(comm, "ncclCommSuspend");
  }
  for (const ncclComm_t comm : me.comms) {
    nccl(ncclCommResume(comm), comm, "ncclCommResume");
    settle(comm, "ncclCommResume");
  }
  for (const ncclComm_t comm : me.comms) useComm(comm, pool);
}

/// One rank does not come to an operation: the watchdogs of the others abort its communicator.
void timeOut(Watchdog& watchdog, ncclComm_t comm, float* pool) {
  const auto began = Clock::now();
  if (me.rank != me.size - 1) {
    nccl(ncclAllReduce(pool, pool, kCount, ncclFloat, ncclSum, comm, me.stream), comm, "the operation that never ends");
  }
  watchdog.abortAfter(comm, kTimeout);
  wait("work that the watchdog has aborted");
  while (!watchdog.aborted()) {
    if (Clock::now() - began > kPatience) die("the watchdog does not abort");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void live() {
  cuda(cudaSetDevice(me.rank), "cudaSetDevice");
  cuda(cudaStreamCreateWithFlags(&me.stream, cudaStreamNonBlocking), "a stream");
  int version = 0;
  nccl(ncclGetVersion(&version), nullptr, "ncclGetVersion");
  const ncclUniqueId id = exchangeId();
  Watchdog watchdog;
  ncclComm_t world = nullptr;
  ncclConfig_t wanted = config();
  const ncclResult_t begun = ncclCommInitRankConfig(&world, me.size, id, me.rank, &wanted);
  nccl(begun, world, "ncclCommInitRankConfig");
  watchdog.add(world);
  me.comms.push_back(world);

  float* const pool = newPool();
  void* segment = nullptr;
  nccl(ncclCommRegister(world, pool, 2 * kCount * sizeof(float), &segment), nullptr, "ncclCommRegister");
  useComm(world, pool);
  splitGroups(world, watchdog, pool);
  sleepPhase(pool);
  nccl(ncclCommDeregister(world, segment), nullptr, "ncclCommDeregister");

  // The one that is given up.
  const ncclComm_t doomed = newGroup(world, true, me.rank);
  watchdog.add(doomed);
  useComm(doomed, pool);
  timeOut(watchdog, doomed, pool);
  useComm(world, pool);
  for (auto comm = me.comms.rbegin(); comm != me.comms.rend(); ++comm) {
    watchdog.remove(*comm);
    nccl(ncclCommDestroy(*comm), nullptr, "ncclCommDestroy");
  }
  nccl(ncclMemFree(pool), nullptr, "ncclMemFree");
  cuda(cudaStreamDestroy(me.stream), "cudaStreamDestroy");
  if (watchdog.polls() == 0) die("the watchdog has seen nothing");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  me.rank = std::atoi(argv[1]);
  me.size = std::atoi(argv[2]);
  me.folder = argv[3];
  checkReplaced();
  live();
  std::printf("rank %d: done\n", me.rank);
  return 0;
}
