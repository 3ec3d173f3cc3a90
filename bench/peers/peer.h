// Peers for comparison: the same collective, timed the same way, in another library or straight in shared memory. Not
// part of the build: see the Makefile here and bench/compare_peers.py.
//
// Sizes are nccl-tests' sizes: bytes of the larger of a rank's two buffers. Calls follow each other without a barrier;
// the figure is the median over rounds of (slowest rank's time / calls).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace peer {

enum class Op { AllReduce, AllGather, ReduceScatter, Broadcast, AlltoAll };

/// One collective call of floats; `count`: floats of a rank's block, or of the whole buffer of AllReduce and Broadcast.
struct Call {
  Op op;
  const float* in;
  float* out;
  std::size_t count;
};

/// A library as one rank sees it.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  /// The largest value of all ranks, on all ranks.
  virtual double largest(double value) = 0;
  /// Memory for one size; what was handed out before for another size is not used any more after forgetBuffers().
  virtual float* allocate(std::size_t bytes) = 0;
  virtual void forgetBuffers() = 0;
  /// What runs the call once and returns when this rank is done; empty if the library has no such collective.
  virtual std::function<void()> prepare(const Call& call) = 0;
};

/// A peer that works with ordinary memory.
class HeapPeer : public Peer {
 public:
  float* allocate(std::size_t bytes) override {
    blocks_.push_back(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
    return static_cast<float*>(blocks_.back());
  }
  void forgetBuffers() override {
    for (void* block : blocks_) std::free(block);
    blocks_.clear();
  }

 private:
  std::vector<void*> blocks_;
};

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Small integers: sums are exact.
inline float input(int rank, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 5) % 13);
}

/// Element i of what `rank` of `size` must get.
inline float expected(const Call& call, int rank, int size, std::size_t i) {
  const std::size_t block = call.count;
  const auto own = static_cast<std::size_t>(rank) * block;
  float sum = 0;
  switch (call.op) {
    case Op::AllGather: return input(static_cast<int>(i / block), i % block);
    case Op::AlltoAll: return input(static_cast<int>(i / block), own + i % block);
    case Op::Broadcast: return input(0, i);
    case Op::AllReduce:
      for (int r = 0; r < size; ++r) sum += input(r, i);
      return sum;
    case Op::ReduceScatter:
      for (int r = 0; r < size; ++r) sum += input(r, own + i);
      return sum;
  }
  return sum;
}

struct Shape {
  std::size_t count;  ///< Call::count
  std::size_t in;     ///< floats of the input
  std::size_t out;
};

inline Shape shapeOf(Op op, std::size_t bytes, int size) {
  const auto n = static_cast<std::size_t>(size);
  const bool blocks = op != Op::AllReduce && op != Op::Broadcast;
  const std::size_t count = std::max<std::size_t>(bytes / sizeof(float) / (blocks ? n : 1), 1);
  return {count, op == Op::ReduceScatter || op == Op::AlltoAll ? count * n : count,
          op == Op::AllGather || op == Op::AlltoAll ? count * n : count};
}

/// Seconds per call.
inline double timeCalls(Peer& peer, const std::function<void()>& run, double budget) {
  double once = 1e9;
  for (int i = 0; i < 3; ++i) {
    peer.barrier();
    const double start = now();
    run();
    once = std::min(once, peer.largest(now() - start));
  }
  once = std::max(once, 1e-7);
  const int calls = static_cast<int>(std::clamp(500e-6 / once, 1.0, 500.0));
  const int rounds = static_cast<int>(std::clamp(budget / (once * calls), 3.0, 40.0));
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    peer.barrier();
    const double start = now();
    for (int i = 0; i < calls; ++i) run();
    seconds.push_back(peer.largest((now() - start) / calls));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

/// False if a result was wrong.
inline bool runSize(Peer& peer, Op op, std::size_t bytes, double budget) {
  const Shape shape = shapeOf(op, bytes, peer.size());
  float* in = peer.allocate(shape.in * sizeof(float));
  float* out = peer.allocate(shape.out * sizeof(float));
  for (std::size_t i = 0; i < shape.in; ++i) in[i] = input(peer.rank(), i);
  std::fill(out, out + shape.out, -1.0F);
  const Call call{op, in, out, shape.count};
  const std::function<void()> run = peer.prepare(call);
  if (!run) return true;
  peer.barrier();
  run();
  double wrong = 0;
  for (std::size_t i = 0; i < shape.out; ++i) wrong += out[i] != expected(call, peer.rank(), peer.size(), i);
  wrong = peer.largest(wrong);
  const double seconds = timeCalls(peer, run, budget);
  peer.barrier();
  peer.forgetBuffers();
  if (peer.rank() == 0) {
    std::printf("{\"bytes\": %zu, \"time_us_b2b\": %.3f, \"errors\": %.0f}\n",
                std::max(shape.in, shape.out) * sizeof(float), seconds * 1e6, wrong);
    std::fflush(stdout);
  }
  return wrong == 0;
}

/// --op NAME --sizes LIST --budget SECONDS; other options are ignored. Returns the exit code.
inline int runPeer(Peer& peer, int argc, char** argv) {
  const std::vector<std::string> names{"allreduce", "allgather", "reducescatter", "broadcast", "alltoall"};
  std::string op = "alltoall", sizes = "8";
  double budget = 0.2;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--op") == 0) op = argv[i + 1];
    if (std::strcmp(argv[i], "--sizes") == 0) sizes = argv[i + 1];
    if (std::strcmp(argv[i], "--budget") == 0) budget = std::atof(argv[i + 1]);
  }
  const auto found = std::find(names.begin(), names.end(), op);
  if (found == names.end()) {
    std::fprintf(stderr, "no such collective: %s\n", op.c_str());
    return 2;
  }
  bool right = true;
  std::istringstream list(sizes);
  for (std::string item; std::getline(list, item, ',');) {
    right = runSize(peer, static_cast<Op>(found - names.begin()), std::stoull(item), budget) && right;
  }
  return right ? 0 : 1;
}

}  // namespace peer
