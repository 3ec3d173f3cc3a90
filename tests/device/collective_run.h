// One collective on hand-made ranks, checked against exact references: inputs are small whole numbers, so every type's
// sums are exact.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "device/built_kernels.h"
#include "device/kernels/kernel_name.h"
#include "device/launch.h"
#include "device/partition.h"
#include "device/values.h"
#include "device/world.h"

namespace tutti::device::test {

struct Case {
  Func func = Func::AllReduce;
  Algorithm algorithm = Algorithm::Ring;
  Protocol protocol = Protocol::Simple;
  DevOp op = DevOp::Sum;
  ncclDataType_t type = ncclFloat32;
  std::uint64_t count = 1;
  bool inPlace = false;
  unsigned threads = 1;
  std::size_t misalign = 0;  ///< elements by which the buffers are shifted
  int root = 0;
  PairMethod pairMethod = PairMethod::Ring;
  bool mixed = false;  ///< of ranks in place, only those with an odd number

  bool inPlaceOn(int rank) const { return inPlace && (!mixed || rank % 2 == 1); }
};

inline double input(int rank, std::uint64_t i, const Case& c) {
  if (c.op == DevOp::Prod) return (static_cast<std::uint64_t>(rank) + i) % 2 + 1.0;
  // Sums of three numbers up to 1, twice each, are whole numbers that even e5m2 holds.
  const bool tiny = c.type == ncclFloat8e4m3 || c.type == ncclFloat8e5m2;
  return static_cast<double>((static_cast<std::uint64_t>(rank) * 3 + i) % (tiny ? 2 : 7));
}

/// What rank `rank` must find at element i of the reduced vector.
inline double reduced(int nRanks, std::uint64_t i, const Case& c) {
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
    if (c_.inPlaceOn(r) && c_.func == Func::ReduceScatter) return in(r) + r * c_.count;
    return outs_[r].data() + c_.misalign;
  }
  T* in(int r) {
    if (!c_.inPlaceOn(r) || c_.func == Func::ReduceScatter) return ins_[r].data() + c_.misalign;
    return out(r) + (c_.func == Func::AllGather ? r * c_.count : 0);
  }

  void fill(int r) {
    ins_.emplace_back(inCount() + c_.misalign + 1);
    outs_.emplace_back(outCount() + c_.misalign + 1, fromDouble<T>(0));
    outs_[r].back() = fromDouble<T>(7);
    for (std::uint64_t i = 0; i < inCount(); ++i) in(r)[i] = fromDouble<T>(input(r, i, c_));
  }

  KernelArgs args(int r) {
    const ChunkShape shape = chunkShape(c_.func, c_.algorithm, c_.protocol, world_.slotBytesOf(c_.protocol));
    KernelArgs args{};
    args.comm = world_.comm(r);
    args.nWorks = 1;
    CollWork& work = args.coll[0];
    work.send = in(r);
    work.recv = out(r);
    work.count = c_.count * (reduces(c_.func) ? 1 : sizeof(T));
    work.chunkBytes = shape.chunkBytes;
    work.stepsPerChunk = shape.stepsPerChunk;
    work.pairMethod = c_.pairMethod;
    work.root = c_.root;
    work.channelHi = static_cast<std::uint8_t>(world_.shape().nChannels - 1);
    const T two = fromDouble<T>(2);
    std::memcpy(&work.scalar, &two, sizeof(T));
    work.op = c_.op;
    if (c_.op == DevOp::SumPostDiv) work.scalar = static_cast<std::uint64_t>(n_);
    return args;
  }

  void launch() {
    const auto name = kernelName(c_.func, c_.algorithm, c_.protocol, c_.op, c_.type);
    const simt::HostKernel* kernel = findKernel(name);
    ASSERT_NE(kernel, nullptr) << name;
    std::vector<std::unique_ptr<Launch>> launches;
    for (int r = 0; r < n_; ++r) {
      launches.push_back(std::make_unique<Launch>(*kernel, world_.shape().nChannels, c_.threads, args(r)));
    }
  }

  double expected(int r, std::uint64_t i) const {
    switch (c_.func) {
      case Func::AllReduce:
      case Func::Reduce:
        return reduced(n_, i, c_);
      case Func::ReduceScatter:
        return reduced(n_, r * c_.count + i, c_);
      case Func::AllGather:
        return input(static_cast<int>(i / c_.count), i % c_.count, c_);
      case Func::Broadcast:
        return input(c_.root, i, c_);
      case Func::SendRecv:
        return 0;
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

/// Does nothing where the build has left the kernel out.
inline void check(World& world, const Case& c) {
  const std::string name = kernelName(c.func, c.algorithm, c.protocol, c.op, c.type);
  if (isLeftOut(name)) return;
  SCOPED_TRACE(name + " ranks " + std::to_string(world.shape().nRanks) + " count " + std::to_string(c.count) +
               " threads " + std::to_string(c.threads));
  withType(c.type, [&]<class T>() { Run<T>(world, c).check(); });
}

}  // namespace tutti::device::test
