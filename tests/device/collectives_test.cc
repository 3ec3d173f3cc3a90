// The collective kernels against exact references: inputs are small whole numbers, so every type's sums are exact.
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "device/float16_host.h"
#include "device/float8.h"
#include "device/kernel_name.h"
#include "device/partition.h"
#include "device/thread_executor.h"
#include "device/world.h"

namespace tutti::device::test {
namespace {

double asDouble(Half h) { return toFloat(h); }
double asDouble(BFloat16 b) { return toFloat(b); }
double asDouble(Float8E4M3 e) { return toFloat(e); }
double asDouble(Float8E5M2 e) { return toFloat(e); }
template <class T>
double asDouble(T value) {
  return static_cast<double>(value);
}
template <class T>
T fromDouble(double value) {
  if constexpr (std::is_same_v<T, Half>) {
    return toHalf(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return toBFloat16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, Float8E4M3> || std::is_same_v<T, Float8E5M2>) {
    return toFloat8<T>(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

struct Case {
  Func func = Func::AllReduce;
  DevOp op = DevOp::Sum;
  ncclDataType_t type = ncclFloat32;
  std::uint64_t count = 1;
  bool inPlace = false;
  unsigned threads = 1;
  std::size_t misalign = 0;  ///< elements by which the buffers are shifted
  int root = 0;
};

double input(int rank, std::uint64_t i, const Case& c) {
  if (c.op == DevOp::Prod) return (static_cast<std::uint64_t>(rank) + i) % 2 + 1.0;
  // Sums of three numbers up to 1, twice each, are whole numbers that even e5m2 holds.
  const bool tiny = c.type == ncclFloat8e4m3 || c.type == ncclFloat8e5m2;
  return static_cast<double>((static_cast<std::uint64_t>(rank) * 3 + i) % (tiny ? 2 : 7));
}

/// What rank `rank` must find at element i of the reduced vector.
double reduced(int nRanks, std::uint64_t i, const Case& c) {
  double result = c.op == DevOp::Prod ? 1 : c.op == DevOp::Min ? 1e9 : 0;
  for (int r = 0; r < nRanks; ++r) {
    const double x = input(r, i, c);
    if (c.op == DevOp::Prod) result *= x;
    if (c.op == DevOp::Max) result = std::max(result, x);
    if (c.op == DevOp::Min) result = std::min(result, x);
    if (c.op == DevOp::Sum || c.op == DevOp::SumPostDiv) result += x;
    if (c.op == DevOp::PreMulSum) result += 2 * x;
  }
  return c.op == DevOp::SumPostDiv ? static_cast<double>(static_cast<int>(result) / nRanks) : result;
}

template <class T>
class Run {
 public:
  Run(World& world, const Case& c) : world_(world), c_(c), n_(world.shape().nRanks) {}

  void check() {
    for (int r = 0; r < n_; ++r) fill(r);
    launch();
    for (int r = 0; r < n_; ++r) compare(r);
  }

 private:
  std::uint64_t inCount() const { return c_.func == Func::ReduceScatter ? c_.count * n_ : c_.count; }
  std::uint64_t outCount() const { return c_.func == Func::AllGather ? c_.count * n_ : c_.count; }
  T* out(int r) {
    if (c_.inPlace && c_.func == Func::ReduceScatter) return in(r) + r * c_.count;
    return outs_[r].data() + c_.misalign;
  }
  T* in(int r) {
    if (!c_.inPlace || c_.func == Func::ReduceScatter) return ins_[r].data() + c_.misalign;
    return out(r) + (c_.func == Func::AllGather ? r * c_.count : 0);
  }

  void fill(int r) {
    ins_.emplace_back(inCount() + c_.misalign + 1);
    outs_.emplace_back(outCount() + c_.misalign + 1, fromDouble<T>(0));
    outs_[r].back() = fromDouble<T>(7);
    for (std::uint64_t i = 0; i < inCount(); ++i) in(r)[i] = fromDouble<T>(input(r, i, c_));
  }

  KernelArgs args(int r) {
    const ChunkShape shape = chunkShape(c_.func, world_.shape().slotBytes);
    KernelArgs args{};
    args.comm = world_.comm(r);
    args.nWorks = 1;
    CollWork& work = args.coll[0];
    work.send = in(r);
    work.recv = out(r);
    work.count = c_.count * (reduces(c_.func) ? 1 : sizeof(T));
    work.chunkBytes = shape.chunkBytes;
    work.stepsPerChunk = shape.stepsPerChunk;
    work.root = c_.root;
    work.channelHi = static_cast<std::uint8_t>(world_.shape().nChannels - 1);
    const T two = fromDouble<T>(2);
    std::memcpy(&work.scalar, &two, sizeof(T));
    work.op = c_.op;
    if (c_.op == DevOp::SumPostDiv) work.scalar = static_cast<std::uint64_t>(n_);
    return args;
  }

  void launch() {
    const auto name = kernelName(c_.func, Algorithm::Ring, Protocol::Simple, c_.op, c_.type);
    const simt::HostKernel* kernel = findKernel(name);
    ASSERT_NE(kernel, nullptr) << name;
    std::vector<std::unique_ptr<ThreadLaunch>> launches;
    for (int r = 0; r < n_; ++r) {
      launches.push_back(std::make_unique<ThreadLaunch>(*kernel, world_.shape().nChannels, c_.threads, args(r)));
    }
  }

  double expected(int r, std::uint64_t i) const {
    switch (c_.func) {
      case Func::AllReduce:
      case Func::Reduce: return reduced(n_, i, c_);
      case Func::ReduceScatter: return reduced(n_, r * c_.count + i, c_);
      case Func::AllGather: return input(static_cast<int>(i / c_.count), i % c_.count, c_);
      case Func::Broadcast: return input(c_.root, i, c_);
      case Func::SendRecv: return 0;
    }
    return 0;
  }

  void compare(int r) {
    if (c_.func == Func::Reduce && r != c_.root) return;
    for (std::uint64_t i = 0; i < outCount(); ++i) {
      ASSERT_EQ(asDouble(out(r)[i]), expected(r, i)) << "rank " << r << " element " << i << " of " << c_.count;
    }
    ASSERT_EQ(asDouble(outs_[r].back()), 7) << "wrote past the end";
  }

  World& world_;
  Case c_;
  int n_;
  std::vector<std::vector<T>> ins_, outs_;
};

void check(World& world, const Case& c) {
  SCOPED_TRACE(kernelName(c.func, Algorithm::Ring, Protocol::Simple, c.op, c.type) + " ranks " +
               std::to_string(world.shape().nRanks) + " count " + std::to_string(c.count) + " threads " +
               std::to_string(c.threads));
  switch (c.type) {
    case ncclInt8: return Run<std::int8_t>(world, c).check();
    case ncclUint8: return Run<std::uint8_t>(world, c).check();
    case ncclInt32: return Run<std::int32_t>(world, c).check();
    case ncclUint32: return Run<std::uint32_t>(world, c).check();
    case ncclInt64: return Run<std::int64_t>(world, c).check();
    case ncclUint64: return Run<std::uint64_t>(world, c).check();
    case ncclFloat16: return Run<Half>(world, c).check();
    case ncclFloat32: return Run<float>(world, c).check();
    case ncclFloat64: return Run<double>(world, c).check();
    case ncclBfloat16: return Run<BFloat16>(world, c).check();
    case ncclFloat8e4m3: return Run<Float8E4M3>(world, c).check();
    case ncclFloat8e5m2: return Run<Float8E5M2>(world, c).check();
    case ncclNumTypes: break;
  }
  FAIL() << "no such type";
}

constexpr Func kFuncs[] = {Func::Broadcast, Func::Reduce, Func::AllGather, Func::ReduceScatter, Func::AllReduce};

TEST(Collectives, EveryCountIsRightOnEveryNumberOfRanks) {
  for (const int nRanks : {1, 2, 3, 4, 5, 8}) {
    World world({.nRanks = nRanks});
    for (const Func func : kFuncs) {
      // None, one, odd, more than a chunk (1024 floats), more than the FIFO (2048 floats).
      for (const std::uint64_t count : {0, 1, 131, 1025, 5003}) {
        for (const bool inPlace : {false, true}) {
          check(world, {.func = func, .count = count, .inPlace = inPlace, .root = nRanks - 1});
        }
      }
    }
  }
}

TEST(Collectives, EveryTypeAndOperationIsExact) {
  World world({.nRanks = 3, .slotBytes = 512});
  for (int type = 0; type < ncclNumTypes; ++type) {
    for (const DevOp op :
         {DevOp::Sum, DevOp::Prod, DevOp::Max, DevOp::Min, DevOp::PreMulSum, DevOp::SumPostDiv}) {
      for (const Func func : {Func::AllReduce, Func::ReduceScatter, Func::Reduce}) {
        const auto t = static_cast<ncclDataType_t>(type);
        if (!kernelExists(func, Algorithm::Ring, Protocol::Simple, op, t)) continue;
        check(world, {.func = func, .op = op, .type = t, .count = 1300});
      }
    }
  }
}

TEST(Collectives, WarpsShareTheWorkOfABlock) {
  World world({.nRanks = 2, .nChannels = 2, .slotBytes = 512});
  for (const Func func : kFuncs) {
    for (const std::uint64_t count : {1, 777}) check(world, {.func = func, .count = count, .threads = 32});
  }
  check(world, {.func = Func::AllReduce, .op = DevOp::PreMulSum, .count = 900, .threads = 64});
}

TEST(Collectives, ElementAlignmentIsEnough) {
  World world({.nRanks = 3});
  for (const Func func : kFuncs) {
    check(world, {.func = func, .type = ncclInt8, .count = 3001, .misalign = 1});
    check(world, {.func = func, .type = ncclFloat16, .count = 1501, .misalign = 3});
    check(world, {.func = func, .type = ncclFloat64, .count = 501, .misalign = 1});
  }
}

TEST(Collectives, CountersMayWrapAround) {
  World world({.nRanks = 2, .slotBytes = 512, .firstStep = ~std::uint64_t{0} - 5});
  for (int round = 0; round < 3; ++round) check(world, {.count = 1500});
}

TEST(Collectives, EveryRootIsServed) {
  World world({.nRanks = 4});
  for (int root = 0; root < 4; ++root) {
    check(world, {.func = Func::Broadcast, .count = 300, .root = root});
    check(world, {.func = Func::Reduce, .count = 300, .root = root});
  }
}

TEST(Collectives, LargeOutputsThatBypassTheCacheAreRight) {
  World world({.nRanks = 2, .slotBytes = 128 << 10});
  check(world, {.func = Func::AllReduce, .count = (9 << 18) + 5});
  check(world, {.func = Func::ReduceScatter, .count = (9 << 18) + 5, .misalign = 1});
}

TEST(Collectives, AbortEndsAKernelWhosePeerNeverComes) {
  World world({.nRanks = 2});
  for (const unsigned threads : {1u, 64u}) {
    std::vector<float> data(10000, 1.0f);
    KernelArgs args{};
    args.comm = world.comm(0);
    args.nWorks = 1;
    args.coll[0] = {.send = data.data(), .recv = data.data(), .count = data.size(), .chunkBytes = 2048,
                    .stepsPerChunk = 2};
    std::atomic_ref<std::uint32_t>(*world.abortWord()).store(0);
    ThreadLaunch launch(*findKernel("tutti_AllReduce_Ring_Simple_Sum_f32"), 1, threads, args);
    std::atomic_ref<std::uint32_t>(*world.abortWord()).store(1);
  }
}

}  // namespace
}  // namespace tutti::device::test
