#include "device/primitive_runs.h"

#include <algorithm>
#include <memory>

#include "device/collnet_world.h"
#include "device/kernels/kernel_name.h"
#include "device/partition.h"
#include "device/thread_executor.h"
#include "device/world.h"

namespace tutti::device::test {
namespace {

using Values = std::vector<std::int32_t>;

/// Inputs, outputs and references of one launch.
class Run {
 public:
  Run(const Primitive& primitive, const RunShape& shape, World& world, unsigned launch)
      : primitive_(primitive), shape_(shape), world_(world), launch_(launch) {
    for (int r = 0; r < shape.nRanks; ++r) {
      for (unsigned w = 0; w < shape.nWorks; ++w) {
        Values& in = ins_.emplace_back(inCount());
        for (std::uint64_t i = 0; i < in.size(); ++i) in[i] = input(r, w, i);
        outs_.emplace_back(outCount() + 1, -7777);
        results_.emplace_back();
      }
    }
  }

  KernelArgs args(int rank) {
    KernelArgs args{};
    args.comm = world_.comm(rank);
    args.nWorks = shape_.nWorks;
    // Slots of all protocols hold the same in this world.
    ChunkShape chunk = chunkShape(primitive_.func, primitive_.algorithm, Protocol::Simple, shape_.slotBytes);
    if (primitive_.protocol != Protocol::Simple) chunk = {shape_.slotBytes, 1};
    for (unsigned w = 0; w < shape_.nWorks; ++w) {
      CollWork& work = args.coll[w];
      if (shape_.inPlace) std::copy_n(in(rank, w).begin(), inCount(), out(rank, w).begin());
      work.send = shape_.inPlace ? out(rank, w).data() : in(rank, w).data();
      work.recv = out(rank, w).data();
      work.count = shape_.count * (reduces(primitive_.func) ? 1 : sizeof(std::int32_t));
      work.chunkBytes = chunk.chunkBytes;
      work.stepsPerChunk = chunk.stepsPerChunk;
      work.root = root(w);
      work.channelHi = static_cast<std::uint8_t>(shape_.nChannels - 1);
      work.type = ncclInt32;
    }
    return args;
  }

  /// Everybody sends `count` elements to everybody, itself included: one work per distance.
  KernelArgs messageArgs(int rank) {
    KernelArgs args{};
    args.comm = world_.comm(rank);
    const int n = shape_.nRanks;
    for (unsigned w = 0; w < shape_.nWorks; ++w) {
      for (int k = 0; k < n; ++k) {
        const int to = (rank + k) % n;
        const int from = (rank + n - k) % n;
        P2pWork& work = args.p2p[args.nWorks++];
        work = {};
        work.send = in(rank, w).data() + static_cast<std::uint64_t>(to) * shape_.count;
        work.recv = out(rank, w).data() + static_cast<std::uint64_t>(from) * shape_.count;
        work.sendBytes = work.recvBytes = shape_.count * sizeof(std::int32_t);
        work.sendPeer = to;
        work.recvPeer = from;
        work.sendProtocol = work.recvProtocol = primitive_.protocol;
        work.channelHi = static_cast<std::uint8_t>(shape_.nChannels - 1);
      }
    }
    return args;
  }

  /// The kernel of a rank has ended: the caller does with its buffers what it likes.
  void end(int rank) {
    for (unsigned w = 0; w < shape_.nWorks; ++w) {
      std::fill(in(rank, w).begin(), in(rank, w).end(), -1);
      result(rank, w) = out(rank, w);
      std::fill(out(rank, w).begin(), out(rank, w).end(), -1);
    }
  }

  std::string compare() {
    for (int r = 0; r < shape_.nRanks; ++r) {
      for (unsigned w = 0; w < shape_.nWorks; ++w) {
        if (primitive_.func == Func::Reduce && r != root(w)) continue;
        const Values& found = result(r, w);
        for (std::uint64_t i = 0; i < outCount(); ++i) {
          if (found[i] == expected(r, w, i)) continue;
          return "launch " + std::to_string(launch_) + " work " + std::to_string(w) + " rank " + std::to_string(r) +
                 " element " + std::to_string(i) + " is " + std::to_string(found[i]) + " and not " +
                 std::to_string(expected(r, w, i));
        }
        if (found.back() != -7777) return "rank " + std::to_string(r) + " wrote past the end";
      }
    }
    return {};
  }

 private:
  bool perRank() const { return primitive_.func == Func::SendRecv; }
  std::uint64_t inCount() const {
    const bool all = primitive_.func == Func::ReduceScatter || perRank();
    return shape_.count * (all ? static_cast<unsigned>(shape_.nRanks) : 1u);
  }
  std::uint64_t outCount() const {
    const bool all = primitive_.func == Func::AllGather || perRank();
    return shape_.count * (all ? static_cast<unsigned>(shape_.nRanks) : 1u);
  }
  Values& in(int rank, unsigned work) { return ins_[static_cast<unsigned>(rank) * shape_.nWorks + work]; }
  Values& out(int rank, unsigned work) { return outs_[static_cast<unsigned>(rank) * shape_.nWorks + work]; }
  Values& result(int rank, unsigned work) { return results_[static_cast<unsigned>(rank) * shape_.nWorks + work]; }
  int root(unsigned work) const { return static_cast<int>((work + launch_) % static_cast<unsigned>(shape_.nRanks)); }

  std::int32_t input(int rank, unsigned work, std::uint64_t i) const {
    const std::uint64_t mixed = static_cast<std::uint64_t>(rank) * 131 + work * 977 + launch_ * 3571 + i * 7;
    return static_cast<std::int32_t>(mixed % 10007);
  }
  std::int32_t sum(unsigned work, std::uint64_t i) const {
    std::int32_t total = 0;
    for (int r = 0; r < shape_.nRanks; ++r) total += input(r, work, i);
    return total;
  }
  std::int32_t expected(int rank, unsigned work, std::uint64_t i) const {
    const std::uint64_t own = static_cast<std::uint64_t>(rank) * shape_.count;
    const int from = shape_.count == 0 ? 0 : static_cast<int>(i / shape_.count);
    switch (primitive_.func) {
      case Func::AllReduce:
      case Func::Reduce:
        return sum(work, i);
      case Func::ReduceScatter:
        return sum(work, own + i);
      case Func::AllGather:
        return input(from, work, i % shape_.count);
      case Func::Broadcast:
        return input(root(work), work, i);
      case Func::SendRecv:
        return input(from, work, own + i % shape_.count);
    }
    return 0;
  }

  const Primitive& primitive_;
  const RunShape& shape_;
  World& world_;
  unsigned launch_;
  std::vector<Values> ins_, outs_, results_;
};

}  // namespace

std::vector<Primitive> primitives() {
  std::vector<Primitive> all;
  for (int func = 0; func < static_cast<int>(Func::SendRecv); ++func) {
    for (int algorithm = 0; algorithm <= static_cast<int>(Algorithm::Direct); ++algorithm) {
      for (int protocol = 0; protocol < kProtocols; ++protocol) {
        const Primitive p{static_cast<Func>(func), static_cast<Algorithm>(algorithm), static_cast<Protocol>(protocol)};
        if (methodExists(p.func, p.algorithm, p.protocol)) all.push_back(p);
      }
    }
  }
  for (const Protocol protocol : {Protocol::Simple, Protocol::LL}) {
    all.push_back({Func::SendRecv, Algorithm::Direct, protocol});
  }
  return all;
}

std::string primitiveName(const Primitive& p) {
  const bool sums = reduces(p.func);
  return kernelName(p.func, p.algorithm, p.protocol, DevOp::Sum, sums ? ncclInt32 : ncclInt8);
}

namespace {

/// By nodes of a network that reduces by itself. Where every rank is a head there are as many heads as ranks.
std::vector<RunShape> collNetShapesFor(const Primitive& primitive) {
  std::vector<RunShape> shapes{
      {4, 1, 4, 700},                                    // one thread per crew
      {6, 3, 4, 900, 512, 3},                            // chains of several lengths of heads' lanes
      {4, 2, 128, 300},                                  // one warp per crew
      {6, 1, 256, 400, 512, 2, 1},                       // waiters in different warps
      {4, 2, 4, 300, 512, 2, 2, ~std::uint64_t{0} - 2},  // counters wrap around
  };
  const bool allAreHeads = primitive.func != Func::AllReduce;
  for (RunShape& shape : shapes) {
    shape.nodes = 2;
    shape.heads = allAreHeads || shape.nRanks == 4 ? shape.nRanks / 2 : 2;
  }
  if (!allAreHeads) shapes[0].heads = 1;
  return shapes;
}

std::vector<RunShape> pushedShapesFor(const Primitive& primitive) {
  if (primitive.algorithm == Algorithm::CollNetDirect || primitive.algorithm == Algorithm::CollNetChain) {
    return collNetShapesFor(primitive);
  }
  if (primitive.func == Func::SendRecv) {
    return {{2, 1, 2, 700}, {3, 1, 64, 90}, {2, 2, 128, 600, 512, 3}};
  }
  return {
      {2, 1, 1, 700},                                            // one thread per block
      {3, 1, 32, 450},                                           // one warp does all duties
      {2, 2, 96, 1100, 512, 3},                                  // waiters in different warps, two channels
      {4, 1, 64, 300, 512, 2, 2, ~std::uint64_t{0} - 2},         // counters wrap around
      {2, 1, 64, 40, 512, 20, 2, (std::uint64_t{1} << 30) - 4},  // small ones pass the start of an epoch
  };
}

}  // namespace

std::vector<RunShape> shapesFor(const Primitive& primitive) {
  std::vector<RunShape> shapes = pushedShapesFor(primitive);
  if (primitive.protocol != Protocol::Simple) return shapes;
  for (std::size_t i = 0; i < 3; ++i) {
    shapes.push_back(shapes[i]);
    shapes.back().pulls = true;
  }
  if (primitive.func == Func::AllReduce) {
    for (std::size_t i = 0; i < 3; ++i) {
      shapes.push_back(shapes[i]);
      shapes.back().pulls = shapes.back().inPlace = true;
    }
  }
  if (primitive.func != Func::SendRecv) return shapes;
  for (std::size_t i = 0; i < 3; ++i) {
    shapes.push_back(shapes[i]);
    shapes.back().sharedSlots = i == 0 ? 1 : 4;
  }
  shapes.push_back(shapes.back());
  shapes.back().pulls = true;
  return shapes;
}

std::string shapeName(const RunShape& s) {
  return std::to_string(s.nRanks) + " ranks, " + std::to_string(s.nChannels) + " channels, " +
         std::to_string(s.threads) + " threads, count " + std::to_string(s.count) + (s.pulls ? ", pulled" : "") +
         (s.inPlace ? ", in place" : "") +
         (s.heads != 0 ? ", " + std::to_string(s.nodes) + " nodes, " + std::to_string(s.heads) + " heads" : "") +
         (s.sharedSlots != 0 ? ", " + std::to_string(s.sharedSlots) + " shared slots" : "");
}

namespace {

/// Ranks, and the network between them, if there is one.
class TestWorld {
 public:
  virtual ~TestWorld() = default;
  virtual World& world() = 0;
  /// What happens between rounds of the kernels; whether anything did.
  virtual bool move() = 0;
  virtual std::string wrong() const { return {}; }
  /// For when all kernels have ended: empty, or what is left over.
  virtual std::string unfinished() const = 0;
};

class PlainWorld : public TestWorld {
 public:
  explicit PlainWorld(const RunShape& shape)
      : world_({.nRanks = shape.nRanks,
                .nChannels = shape.nChannels,
                .slotBytes = shape.slotBytes,
                .firstStep = shape.firstStep,
                .pulls = shape.pulls,
                .apart = shape.sharedSlots != 0,
                .sharedSlots = shape.sharedSlots}) {}
  World& world() override { return world_; }
  bool move() override { return world_.moveShared(); }
  std::string unfinished() const override { return world_.acknowledgedShared() ? "" : "steps are left unacknowledged"; }

 private:
  World world_;
};

class ReducingWorld : public TestWorld {
 public:
  explicit ReducingWorld(const RunShape& shape)
      : world_({.nodes = shape.nodes,
                .locals = shape.nRanks / shape.nodes,
                .heads = shape.heads,
                .lanes = shape.nChannels,
                .slotBytes = shape.slotBytes,
                .laneBytes = 2 * shape.slotBytes,
                .firstStep = shape.firstStep,
                .pulls = shape.pulls}) {}
  World& world() override { return world_.world(); }
  bool move() override { return world_.network().move(); }
  std::string wrong() const override { return world_.network().wrong(); }
  std::string unfinished() const override { return world_.network().unfinished(); }

 private:
  CollNetWorld world_;
};

std::unique_ptr<TestWorld> worldFor(const RunShape& shape) {
  if (shape.heads == 0) return std::make_unique<PlainWorld>(shape);
  return std::make_unique<ReducingWorld>(shape);
}

}  // namespace

std::string runPrimitive(const Primitive& primitive, const RunShape& shape, const BlockExecutor::Seeds& seeds) {
  const simt::HostKernel* kernel = findKernel(primitiveName(primitive));
  if (kernel == nullptr) return "there is no kernel " + primitiveName(primitive);
  const std::unique_ptr<TestWorld> made = worldFor(shape);
  World& world = made->world();
  for (unsigned launch = 0; launch < shape.nLaunches; ++launch) {
    Run run(primitive, shape, world, launch);
    BlockExecutor executor(seeds);
    for (int r = 0; r < shape.nRanks; ++r) {
      const bool messages = primitive.func == Func::SendRecv;
      executor.launch(*kernel, shape.nChannels, shape.threads, messages ? run.messageArgs(r) : run.args(r),
                      [&run, r] { run.end(r); });
    }
    const bool ended = executor.run([&] { return made->move(); });
    std::string wrong = made->wrong();
    if (wrong.empty() && !ended) wrong = "it does not end";
    if (wrong.empty()) wrong = run.compare();
    if (wrong.empty()) wrong = made->unfinished();
    if (!wrong.empty()) return "launch " + std::to_string(launch) + ": " + wrong;
  }
  return {};
}

BlockExecutor::Seeds seedsOf(std::uint64_t n) {
  if (n == 0) return {std::nullopt, 1};
  return {n * 7919, n * 104729};
}

}  // namespace tutti::device::test
