// Runs kernels of algorithms that talk to many peers over a hand-built world and compares with a fold in the order of
// ranks, bit by bit.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "device/built_kernels.h"
#include "device/kernels/kernel_name.h"
#include "device/launch.h"
#include "device/number/reduce_op.h"
#include "device/values.h"
#include "device/world.h"

namespace tutti::device::test {

struct JobMethod {
  Func func;
  Algorithm algorithm;
  Protocol protocol;
};
struct Job {
  JobMethod method;
  DevOp op = DevOp::Sum;
  ncclDataType_t type = ncclFloat32;
  std::uint64_t count = 1;
  bool inPlace = false;
  unsigned threads = 1;
  std::size_t misalign = 0;      ///< elements by which the buffers are shifted
  bool mixed = false;            ///< of ranks in place, only those with an odd number
  std::uint32_t chunkBytes = 0;  ///< 0: as much as a slot holds
  std::uint32_t registered = 0;  ///< by rank, from the lowest bit on: whether its buffers are

  bool inPlaceOn(int rank) const { return inPlace && (!mixed || rank % 2 == 1); }
};

inline std::string nameOf(const Job& job) {
  return kernelName(job.method.func, job.method.algorithm, job.method.protocol, job.op, job.type);
}

inline const simt::HostKernel& kernelOf(const Job& job) {
  const simt::HostKernel* kernel = findKernel(nameOf(job));
  EXPECT_NE(kernel, nullptr) << nameOf(job);
  return *kernel;
}

/// Chunks of one slot, as direct algorithms take them; rings take as much of the same.
inline CollWork workFor(const World& world, const Job& job) {
  CollWork work{};
  work.chunkBytes = job.chunkBytes != 0 ? job.chunkBytes : world.shape().slotBytes;  // as much in every protocol
  work.stepsPerChunk = 1;
  work.channelHi = static_cast<std::uint8_t>(world.shape().nChannels - 1);
  work.op = job.op;
  work.type = static_cast<std::uint8_t>(job.type);
  return work;
}

/// With floats that round: any other order of summing them shows.
template <class T>
T valueOf(int rank, std::uint64_t i) {
  const auto mixed = static_cast<std::uint32_t>((i + 1) * 2654435761u + static_cast<std::uint32_t>(rank) * 40503u);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(mixed >> 8);
  } else if constexpr (sizeof(T) >= sizeof(float)) {
    return static_cast<T>(mixed % 100003) / T{7};
  } else {
    return fromDouble<T>((mixed >> 8) % 13 / 8.0);
  }
}

template <class T>
class MethodRun {
 public:
  MethodRun(World& world, const Job& job) : world_(world), job_(job), n_(world.shape().nRanks) {}
  virtual ~MethodRun() = default;

  void check() {
    for (int r = 0; r < n_; ++r) fill(r);
    run();
    for (int r = 0; r < n_; ++r) compare(r);
  }

 protected:
  using One = Pack<T, sizeof(T)>;

  One contribution(int r, std::uint64_t i) { return AnyOp<T>(work(r)).before(One{{valueOf<T>(r, i)}}); }
  One combine(One a, One b) { return AnyOp<T>(work(0)).combine(a, b); }
  CollWork work(int r) {
    CollWork work = workFor(world_, job_);
    work.send = in(r);
    work.recv = out(r);
    work.count = job_.count * (reduces(job_.method.func) ? 1 : sizeof(T));
    const T factor = fromDouble<T>(r + 2);  // every rank its own
    std::memcpy(&work.scalar, &factor, sizeof(T));
    if (job_.op == DevOp::SumPostDiv) work.scalar = static_cast<std::uint64_t>(n_);
    return work;
  }

  KernelArgs args(int r) {
    KernelArgs args{};
    args.comm = world_.comm(r);
    args.nWorks = 1;
    args.coll[0] = work(r);
    args.registered[0] = job_.registered >> r & 1;
    return args;
  }

  /// Runs the kernels of all ranks to their end.
  virtual void run() {
    std::vector<std::unique_ptr<Launch>> launches;
    for (int r = 0; r < n_; ++r) {
      launches.push_back(std::make_unique<Launch>(kernelOf(job_), world_.shape().nChannels, job_.threads, args(r)));
    }
  }
  /// All contributions to element i, in the order in which the method combines them.
  virtual One combined(std::uint64_t i) {
    One sum = contribution(0, i);
    for (int peer = 1; peer < n_; ++peer) sum = combine(sum, contribution(peer, i));
    return sum;
  }

 private:
  std::uint64_t blocksIn() const { return job_.method.func == Func::ReduceScatter ? n_ : 1; }
  std::uint64_t blocksOut() const { return job_.method.func == Func::AllGather ? n_ : 1; }
  T* out(int r) {
    if (job_.inPlaceOn(r) && job_.method.func == Func::ReduceScatter) return in(r) + r * job_.count;
    return outs_[r].data() + job_.misalign;
  }
  T* in(int r) {
    if (!job_.inPlaceOn(r) || job_.method.func == Func::ReduceScatter) return ins_[r].data() + job_.misalign;
    return out(r) + (job_.method.func == Func::AllGather ? r * job_.count : 0);
  }

  void fill(int r) {
    ins_.emplace_back(job_.count * blocksIn() + job_.misalign + 1);
    outs_.emplace_back(job_.count * blocksOut() + job_.misalign + 1, fromDouble<T>(0));
    outs_[r].back() = fromDouble<T>(7);
    for (std::uint64_t i = 0; i < job_.count * blocksIn(); ++i) in(r)[i] = valueOf<T>(r, i);
  }

  One expected(int r, std::uint64_t i) {
    if (job_.method.func == Func::AllGather) {
      return One{{valueOf<T>(static_cast<int>(i / job_.count), i % job_.count)}};
    }
    if (job_.method.func == Func::ReduceScatter) i += r * job_.count;
    return AnyOp<T>(work(r)).after(combined(i));
  }

  void compare(int r) {
    for (std::uint64_t i = 0; i < job_.count * blocksOut(); ++i) {
      const One want = expected(r, i);
      ASSERT_EQ(std::memcmp(&out(r)[i], &want, sizeof(T)), 0)
          << "rank " << r << " element " << i << " of " << job_.count << ": " << asDouble(out(r)[i]) << ", not "
          << asDouble(want.lane[0]);
    }
    ASSERT_EQ(asDouble(outs_[r].back()), 7) << "wrote past the end";
  }

  World& world_;

 protected:
  Job job_;
  int n_;

 private:
  std::vector<std::vector<T>> ins_, outs_;
};

inline std::string describe(const Job& job, int nRanks) {
  return nameOf(job) + " ranks " + std::to_string(nRanks) + " count " + std::to_string(job.count) + " threads " +
         std::to_string(job.threads) + (job.inPlace ? " in place" : "") + (job.mixed ? " on odd ranks" : "");
}

/// Does nothing where the build has left the kernel out.
inline void check(World& world, const Job& job) {
  if (isLeftOut(nameOf(job))) return;
  SCOPED_TRACE(describe(job, world.shape().nRanks));
  withType(job.type, [&]<class T>() { MethodRun<T>(world, job).check(); });
}

}  // namespace tutti::device::test
