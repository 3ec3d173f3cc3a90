// Runs collectives over a network that reduces by itself and compares with a fold in the order of ranks of a node, or
// of a chain, then of nodes, bit by bit.
#pragma once

#include "device/block_executor.h"
#include "device/collnet_world.h"
#include "device/method_run.h"

namespace tutti::device::test {

template <class T>
class CollNetRun : public MethodRun<T> {
 public:
  CollNetRun(CollNetWorld& world, const Job& job) : MethodRun<T>(world.world(), job), world_(world) {}

 private:
  using typename MethodRun<T>::One;

  /// In this thread, which moves the network in between; under ThreadSanitizer all are threads.
  void run() override {
#if defined(__SANITIZE_THREAD__)
    const CollNetThread driver(world_.network());
    MethodRun<T>::run();
#else
    BlockExecutor executor({});
    for (int r = 0; r < this->n_; ++r) {
      executor.launch(kernelOf(this->job_), world_.shape().lanes, this->job_.threads, this->args(r));
    }
    ASSERT_TRUE(executor.run([&] { return world_.network().move(); })) << "it does not end";
#endif
  }

  One combined(std::uint64_t i) override {
    One all{};
    for (int node = 0; node < world_.shape().nodes; ++node) {
      const One more = this->job_.method.algorithm == Algorithm::CollNetChain ? fromChain(node, i) : fromNode(node, i);
      all = node == 0 ? more : this->combine(all, more);
    }
    return all;
  }
  One fromNode(int node, std::uint64_t i) {
    One sum = this->contribution(world_.rankOf(node, 0), i);
    for (int local = 1; local < world_.shape().locals; ++local) {
      sum = this->combine(sum, this->contribution(world_.rankOf(node, local), i));
    }
    return sum;
  }
  One fromChain(int node, std::uint64_t i) {
    const std::vector<int> chain = world_.chainOf(node, channelOf(i));
    One sum = this->contribution(chain.back(), i);
    for (std::size_t at = chain.size() - 1; at-- > 0;) sum = this->combine(this->contribution(chain[at], i), sum);
    return sum;
  }
  unsigned channelOf(std::uint64_t i) const {
    const std::uint64_t chunk = workFor(world_.world(), this->job_).chunkBytes / sizeof(T);
    for (unsigned c = 0; c < world_.shape().lanes; ++c) {
      if (i / chunk % world_.shape().lanes == static_cast<unsigned>(world_.positionOf(c))) return c;
    }
    return 0;
  }

  CollNetWorld& world_;
};

/// Does nothing where the build has left the kernel out.
inline void check(CollNetWorld& world, const Job& job) {
  if (isLeftOut(nameOf(job))) return;
  const CollNetShape& shape = world.shape();
  SCOPED_TRACE(describe(job, world.world().shape().nRanks) + ", " + std::to_string(shape.nodes) + " nodes of " +
               std::to_string(shape.locals) + ", " + std::to_string(shape.heads) + " heads, " +
               std::to_string(shape.lanes) + " lanes");
  withType(job.type, [&]<class T>() { CollNetRun<T>(world, job).check(); });
  ASSERT_EQ(world.network().wrong(), "");
  ASSERT_EQ(world.network().unfinished(), "");
}

}  // namespace tutti::device::test
