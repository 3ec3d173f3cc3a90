// Ranks on hosts that are only called so, whose collectives may run in a network that reduces: case after case, each
// with communicators of its own. What each rank finds is a line, and what belongs to a case stands between two of
// rank 0.
//
//   in_network HOSTS PER_HOST CASE...
//
// A case is "KIND OPERATION [RANK:NAME=VALUE]...": the environment of a rank, or with * of all, while it lasts.
//   right          the operations are right
//   refused        there is no communicator, and the error says why
//   plugin-fails   the operation fails on all ranks; meanwhile and afterwards another communicator, which runs in the
//                  network as well, goes on, and the one that has failed can be aborted
//   switch-fails   the same where the other communicator does not use the network
//   held           the third call never ends, and the communicator can be aborted, beside another that goes on
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "cuda_runtime_api.h"
#include "nccl.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostCount = 40'000;
constexpr std::size_t kFewCount = 1000;  // one call of the network
constexpr int kMostRanks = 16;
constexpr unsigned kCaseSeconds = 120;
constexpr std::chrono::seconds kFailsWithin{60};
constexpr std::chrono::seconds kAbortsWithin{20};
constexpr std::chrono::milliseconds kHeld{500};

/// What the processes of the ranks share.
struct Shared {
  pthread_barrier_t barrier;
  ncclUniqueId id;
};

struct Case {
  std::string kind;
  std::string operation;
  std::vector<std::pair<std::string, std::string>> settings;  ///< of this rank
};

/// A case as it is for one rank.
Case parse(const std::string& text, int rank) {
  std::istringstream words(text);
  Case made;
  words >> made.kind >> made.operation;
  for (std::string word; words >> word;) {
    const std::size_t colon = word.find(':');
    const std::size_t equals = word.find('=');
    CHECK(colon < equals && equals != std::string::npos, true);
    const std::string who = word.substr(0, colon);
    if (who != "*" && std::atoi(who.c_str()) != rank) continue;
    made.settings.emplace_back(word.substr(colon + 1, equals - colon - 1), word.substr(equals + 1));
  }
  return made;
}

/// A variable of the environment that has another value, or none, meanwhile.
class Setting {
 public:
  Setting(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* const before = std::getenv(name_.c_str()); before != nullptr) before_ = before;
    set(value);
  }
  Setting(const Setting&) = delete;
  ~Setting() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) const {
    if (value == nullptr) {
      unsetenv(name_.c_str());
    } else {
      setenv(name_.c_str(), value, 1);
    }
  }
  const std::string name_;
  std::optional<std::string> before_;
};

int valueOf(int rank, std::size_t i) {
  return rank + 1 + static_cast<int>(i % 7);
}

/// Where the operations of a communicator run: kernels of one that has failed may still be under way.
struct Place {
  int* out = nullptr;
  cudaStream_t stream = nullptr;
};

class Rank {
 public:
  Rank(Shared& shared, int rank, int ranks, int device) : shared_(shared), rank_(rank), ranks_(ranks) {
    CHECK(cudaSetDevice(device), cudaSuccess);
    const std::size_t bytes = kMostCount * static_cast<std::size_t>(ranks) * sizeof(int);
    CHECK(cudaMalloc(reinterpret_cast<void**>(&in_), bytes), cudaSuccess);
    for (Place* const place : {&own_, &beside_}) {
      CHECK(cudaMalloc(reinterpret_cast<void**>(&place->out), bytes), cudaSuccess);
      CHECK(cudaStreamCreateWithFlags(&place->stream, cudaStreamNonBlocking), cudaSuccess);
    }
    std::vector<int> values(kMostCount * static_cast<std::size_t>(ranks));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = valueOf(rank, i);
    CHECK(cudaMemcpy(in_, values.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
  }

  void run(const Case& one, int number) {
    alarm(kCaseSeconds);
    together();
    if (rank_ == 0) std::printf("case %d begins: %s %s\n", number, one.kind.c_str(), one.operation.c_str());
    together();
    {
      std::vector<std::unique_ptr<Setting>> settings;
      for (const auto& [name, value] : one.settings) {
        settings.push_back(std::make_unique<Setting>(name, value.c_str()));
      }
      carryOut(one);
    }
    together();
    if (rank_ == 0) std::printf("case %d ends\n", number);
  }

 private:
  void together() { pthread_barrier_wait(&shared_.barrier); }
  template <class... Args>
  void say(const char* format, Args... args) const {
    char text[2048];
    std::snprintf(text, sizeof(text), format, args...);
    std::printf("rank %d: %s\n", rank_, text);
  }

  ncclResult_t make(ncclComm_t& comm) {
    if (rank_ == 0) CHECK(ncclGetUniqueId(&shared_.id), ncclSuccess);
    together();
    const ncclUniqueId id = shared_.id;
    const ncclResult_t result = ncclCommInitRank(&comm, ranks_, id, rank_);
    together();
    return result;
  }

  void carryOut(const Case& one) {
    if (one.kind == "right" || one.kind == "refused") return tryOut(one);
    std::vector<std::unique_ptr<Setting>> plain;
    plain.push_back(std::make_unique<Setting>("SWITCH_COLLNET_FAULTS", nullptr));
    if (one.kind != "plugin-fails") {
      plain.push_back(std::make_unique<Setting>("NCCL_COLLNET_ENABLE", "0"));
      plain.push_back(std::make_unique<Setting>("NCCL_ALGO", nullptr));
    }
    ncclComm_t beside = nullptr;
    CHECK(make(beside), ncclSuccess);
    plain.clear();
    ncclComm_t comm = nullptr;
    CHECK(make(comm), ncclSuccess);
    bool goesOn = areRight(beside, beside_, one.operation);
    if (one.kind == "held") {
      hold(comm, one.operation);
    } else {
      awaitFailure(comm, one.operation);
    }
    goesOn &= areRight(beside, beside_, one.operation);
    const auto begun = Clock::now();
    CHECK(ncclCommAbort(comm), ncclSuccess);
    const auto took = Clock::now() - begun;
    if (took > kAbortsWithin) return say("failed: the abort took too long");
    CHECK(cudaStreamSynchronize(own_.stream), cudaSuccess);
    goesOn &= areRight(beside, beside_, one.operation);
    CHECK(ncclCommDestroy(beside), ncclSuccess);
    if (goesOn) say("the other goes on");
  }

  void tryOut(const Case& one) {
    ncclComm_t comm = nullptr;
    const ncclResult_t made = make(comm);
    if (one.kind == "refused") {
      say("error %d: %s", static_cast<int>(made), ncclGetLastError(nullptr));
      if (comm != nullptr) CHECK(ncclCommAbort(comm), ncclSuccess);
      return;
    }
    CHECK(made, ncclSuccess);
    if (areRight(comm, own_, one.operation)) say("right");
    CHECK(ncclCommDestroy(comm), ncclSuccess);
  }

  ncclResult_t call(ncclComm_t comm, const Place& at, const std::string& operation, std::size_t count) {
    if (operation == "all_reduce") return ncclAllReduce(in_, at.out, count, ncclInt32, ncclSum, comm, at.stream);
    if (operation == "all_gather") return ncclAllGather(in_, at.out, count, ncclInt32, comm, at.stream);
    CHECK(operation == "reduce_scatter", true);
    return ncclReduceScatter(in_, at.out, count, ncclInt32, ncclSum, comm, at.stream);
  }

  int expected(const std::string& operation, std::size_t count, std::size_t i) const {
    if (operation == "all_gather") return valueOf(static_cast<int>(i / count), i % count);
    const std::size_t at = operation == "all_reduce" ? i : static_cast<std::size_t>(rank_) * count + i;
    int sum = 0;
    for (int r = 0; r < ranks_; ++r) sum += valueOf(r, at);
    return sum;
  }

  /// "all": each of them.
  bool areRight(ncclComm_t comm, const Place& at, const std::string& operations) {
    bool right = true;
    for (const char* const one : {"all_reduce", "all_gather", "reduce_scatter"}) {
      if (operations != "all" && operations != one) continue;
      for (const std::size_t count : {std::size_t{1}, kFewCount, kMostCount}) {
        right = isRight(comm, at, one, count) && right;
      }
    }
    return right;
  }

  bool isRight(ncclComm_t comm, const Place& at, const std::string& operation, std::size_t count) {
    const std::size_t results = operation == "all_gather" ? count * static_cast<std::size_t>(ranks_) : count;
    std::vector<int> values(results, -1);
    CHECK(cudaMemcpy(at.out, values.data(), results * sizeof(int), cudaMemcpyHostToDevice), cudaSuccess);
    CHECK(call(comm, at, operation, count), ncclSuccess);
    CHECK(cudaStreamSynchronize(at.stream), cudaSuccess);
    CHECK(cudaMemcpy(values.data(), at.out, results * sizeof(int), cudaMemcpyDeviceToHost), cudaSuccess);
    for (std::size_t i = 0; i < results; ++i) {
      const int wanted = expected(operation, count, i);
      if (values[i] == wanted) continue;
      say("WRONG: %s of %zu: element %zu is %d instead of %d", operation.c_str(), count, i, values[i], wanted);
      return false;
    }
    return true;
  }

  /// What became of the work on the stream by then: an error; ncclInProgress: nothing yet.
  ncclResult_t outcome(ncclComm_t comm, Clock::time_point end) {
    while (true) {
      ncclResult_t state = ncclSuccess;
      CHECK(ncclCommGetAsyncError(comm, &state), ncclSuccess);
      if (state != ncclSuccess) return state;
      if (cudaStreamQuery(own_.stream) == cudaSuccess) return ncclSuccess;
      if (Clock::now() > end) return ncclInProgress;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void awaitFailure(ncclComm_t comm, const std::string& operation) {
    const auto end = Clock::now() + kFailsWithin;
    ncclResult_t result = ncclSuccess;
    while (result == ncclSuccess) {
      result = call(comm, own_, operation, kFewCount);
      if (result == ncclSuccess) result = outcome(comm, end);
      if (Clock::now() > end) return say("failed: there is no error");
    }
    say("error %d: %s", static_cast<int>(result), ncclGetLastError(comm));
  }

  void hold(ncclComm_t comm, const std::string& operation) {
    for (int i = 0; i < 3; ++i) {
      CHECK(call(comm, own_, operation, kFewCount), ncclSuccess);
      const ncclResult_t ended = outcome(comm, Clock::now() + (i < 2 ? kFailsWithin : kHeld));
      CHECK(ended, i < 2 ? ncclSuccess : ncclInProgress);
    }
    together();
    say("held");
  }

  Shared& shared_;
  const int rank_;
  const int ranks_;
  int* in_ = nullptr;
  Place own_;
  Place beside_;
};

void runRank(Shared& shared, int rank, int hosts, int perHost, int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setvbuf(stdout, nullptr, _IOLBF, 4096);  // a line is one write: other ranks have the same file
  setenv("NCCL_HOSTID", ("host" + std::to_string(rank / perHost)).c_str(), 1);
  Rank one(shared, rank, hosts * perHost, rank % perHost);
  for (int i = 0; i < argc; ++i) one.run(parse(argv[i], rank), i);
  std::exit(EXIT_SUCCESS);
}

}  // namespace

int main(int argc, char** argv) {
  const int hosts = argc > 3 ? std::atoi(argv[1]) : 0;
  const int perHost = argc > 3 ? std::atoi(argv[2]) : 0;
  const int ranks = hosts * perHost;
  if (ranks < 2 || ranks > kMostRanks) return 2;
  void* const page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED, true);
  auto* const shared = new (page) Shared;
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  CHECK(pthread_barrier_init(&shared->barrier, &attributes, static_cast<unsigned>(ranks)), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() == 0) runRank(*shared, rank, hosts, perHost, argc - 3, argv + 3);
  }
  for (int ended = 0; ended < ranks; ++ended) {
    int status = 0;
    CHECK(wait(&status) > 0, true);
    if (status == 0) continue;
    // The others would wait for it; they end with this process.
    std::printf("failed: a rank ended with status %d\n", status);
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
