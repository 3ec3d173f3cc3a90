// Peers for comparison: the same collective, timed the same way, in another library or straight in shared memory. Not
// part of the build: see the Makefile here and bench/compare_peers.py.
//
// Sizes are nccl-tests' sizes: bytes of the larger of a rank's two buffers. Calls follow each other without a barrier;
// the figure is the slowest rank's median over rounds of (time / calls).
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

enum class Op { AllReduce, AllGather, ReduceScatter, Broadcast, AlltoAll, SendRecv };

/// One call of floats; `count`: floats of a rank's block, or of the whole buffer of AllReduce, Broadcast and SendRecv,
/// in which each rank sends to the next one and receives from the one before.
struct Call {
  Op op;
  const float* in;
  float* out;
  std::size_t count;
  bool inPlace = false;  ///< `in` is where in `out` the API wants it (AllReduce, AllGather, ReduceScatter)
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
  /// What runs the call once and returns when this rank is done. Where a library only works in place, call.out is set
  /// to where the result will be.
  virtual std::function<void()> prepare(Call& call) = 0;
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
    case Op::AllGather:
      return input(static_cast<int>(i / block), i % block);
    case Op::AlltoAll:
      return input(static_cast<int>(i / block), own + i % block);
    case Op::Broadcast:
      return input(0, i);
    case Op::SendRecv:
      return input((rank + size - 1) % size, i);
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
  const bool blocks = op != Op::AllReduce && op != Op::Broadcast && op != Op::SendRecv;
  const std::size_t count = std::max<std::size_t>(bytes / sizeof(float) / (blocks ? n : 1), 1);
  return {count, op == Op::ReduceScatter || op == Op::AlltoAll ? count * n : count,
          op == Op::AllGather || op == Op::AlltoAll ? count * n : count};
}

/// Seconds per call, of the slowest rank: the median over `rounds` of `calls` calls, all without a barrier between.
inline double timeRounds(Peer& peer, const std::function<void()>& run, int calls, int rounds) {
  std::vector<double> seconds;
  peer.barrier();
  double start = now();
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < calls; ++i) run();
    const double end = now();
    seconds.push_back((end - start) / calls);
    start = end;
  }
  std::sort(seconds.begin(), seconds.end());
  return peer.largest(seconds[seconds.size() / 2]);
}

/// Seconds per call. Rounds are short, so that on a busy machine most of them are undisturbed.
inline double timeCalls(Peer& peer, const std::function<void()>& run, double budget) {
  const double first = timeRounds(peer, run, 1, 2);
  const double once = std::max(first < 5e-3 ? timeRounds(peer, run, 1, 15) : first, 1e-7);
  const int calls = static_cast<int>(std::clamp(500e-6 / once, 1.0, 500.0));
  const int rounds = static_cast<int>(std::clamp(budget / (once * calls), 3.0, 100.0));
  return timeRounds(peer, run, calls, rounds);
}

struct Options {
  Op op = Op::AllReduce;
  std::vector<std::size_t> sizes;  ///< bytes
  std::string algorithm;           ///< empty: the library's or program's own choice
  bool inPlace = false;            ///< where the peer can
  double budget = 0.2;             ///< seconds of timed calls for one size
};

/// False if a result was wrong.
inline bool runSize(Peer& peer, const Options& options, std::size_t bytes) {
  const Op op = options.op;
  const Shape shape = shapeOf(op, bytes, peer.size());
  const std::size_t most = std::max(shape.in, shape.out);
  float* out = peer.allocate((options.inPlace ? most : shape.out) * sizeof(float));
  float* in = options.inPlace ? out : peer.allocate(shape.in * sizeof(float));
  if (options.inPlace && op == Op::AllGather) in += static_cast<std::size_t>(peer.rank()) * shape.count;
  std::fill(out, out + shape.out, -1.0F);
  for (std::size_t i = 0; i < shape.in; ++i) in[i] = input(peer.rank(), i);
  Call call{op, in, out, shape.count, options.inPlace};
  const std::function<void()> run = peer.prepare(call);
  peer.barrier();
  run();
  double wrong = 0;
  for (std::size_t i = 0; i < shape.out; ++i) wrong += call.out[i] != expected(call, peer.rank(), peer.size(), i);
  wrong = peer.largest(wrong);
  const double seconds = timeCalls(peer, run, options.budget);
  peer.barrier();
  peer.forgetBuffers();
  if (peer.rank() == 0) {
    std::printf("{\"bytes\": %zu, \"time_us_b2b\": %.3f, \"errors\": %.0f}\n", most * sizeof(float), seconds * 1e6,
                wrong);
    std::fflush(stdout);
  }
  return wrong == 0;
}

/// --op NAME --sizes BYTES,... [--algo NAME] [--budget SECONDS] [--place out|in]; `algorithms`: the names that --algo
/// may have; `inPlace`: whether the peer can. Ends the program with 2 if they are wrong.
inline Options parse(int argc, char** argv, const std::vector<std::string>& algorithms, bool inPlace = false) {
  const std::vector<std::string> names{"allreduce", "allgather", "reducescatter", "broadcast", "alltoall", "sendrecv"};
  const auto refuse = [](const std::string& what) {
    std::fprintf(stderr, "%s; options: --op NAME --sizes BYTES,... [--algo NAME] [--budget SECONDS] [--place out|in]\n",
                 what.c_str());
    std::exit(2);
  };
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) refuse(name + " has no value");
    const std::string value = argv[i + 1];
    if (name == "--op") {
      const auto found = std::find(names.begin(), names.end(), value);
      if (found == names.end()) refuse("no such collective: " + value);
      options.op = static_cast<Op>(found - names.begin());
    } else if (name == "--sizes") {
      std::istringstream list(value);
      for (std::string size; std::getline(list, size, ',');) {
        options.sizes.push_back(std::strtoull(size.c_str(), nullptr, 10));
      }
    } else if (name == "--algo") {
      const bool known = std::find(algorithms.begin(), algorithms.end(), value) != algorithms.end();
      if (!known) refuse("no such --algo here: " + value);
      options.algorithm = value;
    } else if (name == "--budget") {
      options.budget = std::atof(value.c_str());
    } else if (name == "--place") {
      if (value != "out" && (value != "in" || !inPlace)) refuse("no such --place here: " + value);
      options.inPlace = value == "in";
    } else {
      refuse("no such option: " + name);
    }
  }
  if (options.sizes.empty()) refuse("--sizes is missing");
  const bool placed = options.op == Op::AllReduce || options.op == Op::AllGather || options.op == Op::ReduceScatter;
  if (options.inPlace && !placed) refuse("only allreduce, allgather and reducescatter work in place");
  return options;
}

/// Returns the exit code: 1 if a result was wrong.
inline int runPeer(Peer& peer, const Options& options) {
  bool right = true;
  for (const std::size_t bytes : options.sizes) right = runSize(peer, options, bytes) && right;
  return right ? 0 : 1;
}

}  // namespace peer
