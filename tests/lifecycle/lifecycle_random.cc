// Random lives of communicators: init, split, shrink, grow, revoke, suspend, and their ends, with operations, groups,
// graphs and wrong calls in between, from one seed on all ranks. Each call must answer what the API says, each result
// must be right, nothing may hang, and at the end device memory and descriptors are as at the beginning.
//
//   lifecycle_random SEED STEPS [--ranks N] [--processes] [--few-kernels] [--patience SECONDS] [--print]
//   [--features BITS]
//
// Ranks are threads, or processes with --processes; each has two threads that drive communicators. --few-kernels: only
// operations whose kernels builds with sanitizers have. --print: prints the life without living it. --features: uses
// these alone (lifecycle/library_features.h). The devices are those that softgpu-run gives: one for each rank.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "lifecycle/leaks.h"
#include "lifecycle/library_features.h"
#include "lifecycle/player.h"

namespace {

using namespace lifecycle;

struct Options {
  std::uint64_t seed = 1;
  long steps = 100;
  int ranks = 4;
  bool processes = false;
  bool fewKernels = false;
  bool print = false;
  std::uint32_t features = ~0U;  ///< what is to be used of what there is
  long patienceMs = 60'000;
};

/// The second thread of a rank: does one thing at a time.
class Helper {
 public:
  explicit Helper(int device) : thread_([this, device] { run(device); }) {}
  ~Helper() {
    start(nullptr);
    thread_.join();
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  void start(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    task_ = std::move(task);
    busy_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !busy_; });
  }

 private:
  void run(int device) {
    cudaSetDevice(device);
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return busy_; });
      if (!task_) return;
      lock.unlock();
      task_();
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  bool busy_ = false;
  std::thread thread_;
};

/// The last meetings are not of deeds.
constexpr long kWarm = kMostMeetings - 1;
constexpr long kLived = kMostMeetings - 2;
constexpr long kMeasured = kMostMeetings - 3;
constexpr long kBegun = kMostMeetings - 4;

/// What a process keeps for good is there afterwards: kernels, threads, caches.
void warmUp(Shared& shared, int rank, const Limits& limits) {
  Seat seat;
  Comm comm;
  for (int r = 0; r < limits.ranks; ++r) comm.members.push_back(r);
  Deed make;
  make.kind = Kind::Init;
  make.number = kMostDeeds - 100;
  make.comm = comm;
  Player player(shared, seat, rank, 0, limits);
  const auto play = [&](const Deed& deed) {
    Step step;
    step.lanes[0] = {deed};
    player.play(step);
  };
  play(make);
  for (const OpKind kind : {OpKind::AllReduce, OpKind::Ring, OpKind::AllGather, OpKind::ReduceScatter,
                            OpKind::Broadcast, OpKind::AlltoAll}) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{16'000}}) {
      Deed work;
      work.number = ++make.number;
      work.comm = comm;
      work.op.kind = kind;
      work.op.count = count;
      play(work);
    }
  }
  Deed end = make;
  end.kind = Kind::Destroy;
  play(end);
  player.quiet();
}

/// What graphs have kept of communicators that ended before them goes with the next end of any.
void sweep(Shared& shared, int rank) {
  note(shared, rank, 0, -1, "makes and ends a communicator of its own");
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess ||
      ncclCommDestroy(comm) != ncclSuccess)
    fail(shared, rank, -1, "a communicator of one rank cannot be made and ended");
}

void live(const Options& options, Shared& shared, int rank, std::array<long, kKinds>& counts) {
  Limits limits;
  limits.ranks = options.ranks;
  limits.features = shared.features & options.features;
  limits.fewKernels = options.fewKernels;
  Generator generator(options.seed, limits);
  Seat seat;
  Player player(shared, seat, rank, 0, limits);
  Player second(shared, seat, rank, 1, limits);
  Helper helper(rank);
  const auto play = [&](const Step& step) {
    helper.start([&] {
      second.play(step);
      second.quiet();
    });
    player.play(step);
    player.quiet();
    helper.wait();
  };
  for (long i = 0; i < options.steps; ++i) play(generator.next());
  for (Step step = generator.ending(); !step.lanes[0].empty() || !step.lanes[1].empty(); step = generator.ending())
    play(step);
  for (std::size_t kind = 0; kind < counts.size(); ++kind) counts[kind] = player.counts()[kind] + second.counts()[kind];
}

void probe(Shared& shared, int rank) {
  note(shared, rank, 0, -1, "asks which functions there are");
  if (rank == 0) shared.features = probeFeatures();
  while (shared.features == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Between two measurements nobody is busy. `lead`: the rank that measures for its process, from `first` to `last`.
void runRank(const Options& options, Shared& shared, int rank, int first, int last) {
  if (cudaSetDevice(rank) != cudaSuccess) fail(shared, rank, -1, "there is no device for this rank");
  const bool lead = rank == first;
  probe(shared, rank);
  Limits limits;
  limits.ranks = options.ranks;
  warmUp(shared, rank, limits);
  meet(shared, kWarm, options.ranks);
  Holdings before;
  if (lead) before = holdings(first, last);
  cudaSetDevice(rank);
  meet(shared, kBegun, options.ranks);
  std::array<long, kKinds> counts{};
  live(options, shared, rank, counts);
  sweep(shared, rank);
  note(shared, rank, 0, options.steps, "waits for the others to be done");
  meet(shared, kLived, options.ranks);
  const std::string wrong = lead ? leaked(before, first, last, [&] { sweep(shared, rank); }) : "";
  if (!wrong.empty()) fail(shared, rank, options.steps, "memory or descriptors are left over: " + wrong);
  meet(shared, kMeasured, options.ranks);
  note(shared, rank, 0, options.steps, "");
  if (rank != 0) return;
  std::printf("lived %ld steps of seed %llu with %d %s; what rank 0 did:", options.steps,
              static_cast<unsigned long long>(options.seed), options.ranks,
              options.processes ? "processes" : "threads");
  for (int kind = 0; kind < kKinds; ++kind)
    std::printf("%s %ld %s", kind == 0 ? "" : ",", counts[static_cast<std::size_t>(kind)],
                nameOf(static_cast<Kind>(kind)));
  std::printf("\n");
  if (const std::string missing = missingFeatures(shared.features); !missing.empty())
    fail(shared, rank, options.steps, "the library does not have " + missing);
}

int asThreads(const Options& options, Shared& shared) {
  watch(shared, 0, options.ranks - 1);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.ranks; ++rank)
    threads.emplace_back([&, rank] { runRank(options, shared, rank, 0, options.ranks - 1); });
  for (std::thread& thread : threads) thread.join();
  return 0;
}

int asProcesses(const Options& options, Shared& shared) {
  for (int rank = 0; rank < options.ranks; ++rank) {
    const pid_t child = ::fork();
    if (child != 0) continue;
    watch(shared, rank, rank);
    runRank(options, shared, rank, rank, rank);
    std::fflush(stdout);
    std::exit(0);
  }
  int worst = 0;
  for (int rank = 0; rank < options.ranks; ++rank) {
    int status = 0;
    if (::wait(&status) < 0 || status != 0) worst = 1;
    if (WIFSIGNALED(status)) std::printf("FAILED: a process ended by signal %d\n", WTERMSIG(status));
    if (worst != 0) shared.patienceMs = 1000;  // the others wait for it in vain
  }
  return worst;
}

bool read(int argc, char** argv, Options& options) {
  if (argc < 3) return false;
  options.seed = std::strtoull(argv[1], nullptr, 10);
  options.steps = std::atol(argv[2]);
  for (int i = 3; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--processes")
      options.processes = true;
    else if (name == "--few-kernels")
      options.fewKernels = true;
    else if (name == "--print")
      options.print = true;
    else if (name == "--features" && i + 1 < argc)
      options.features = static_cast<std::uint32_t>(std::atol(argv[++i]));
    else if (name == "--ranks" && i + 1 < argc)
      options.ranks = std::atoi(argv[++i]);
    else if (name == "--patience" && i + 1 < argc)
      options.patienceMs = 1000 * std::atol(argv[++i]);
    else
      return false;
  }
  return options.ranks >= 1 && options.ranks <= kMostRanks && options.steps > 0 && options.steps <= 20'000;
}

int print(const Options& options) {
  Limits limits;
  limits.ranks = options.ranks;
  limits.features = options.features;
  limits.fewKernels = options.fewKernels;
  Generator generator(options.seed, limits);
  for (long i = 0; i < options.steps; ++i) {
    const Step step = generator.next();
    std::printf("step %ld%s\n", step.number, step.grouped ? ", a group" : "");
    for (int lane = 0; lane < kLanes; ++lane)
      for (const Deed& deed : step.lanes[lane]) std::printf("  thread %d: %s\n", lane, describe(deed).c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!read(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: lifecycle_random SEED STEPS [--ranks N] [--processes] [--few-kernels] "
                 "[--patience SECONDS] [--print] [--features BITS]; at most 20000 steps and 8 ranks\n");
    return 2;
  }
  if (options.print) return print(options);
  Shared& shared = makeShared();
  shared.seed = options.seed;
  shared.ranks = options.ranks;
  shared.patienceMs = options.patienceMs;
  return options.processes ? asProcesses(options, shared) : asThreads(options, shared);
}
