// The schedules of ring and tree as pure functions: primitives that move sets of ranks instead of numbers, every rank
// in a thread of its own. Every element must be reduced exactly once per rank, and in the same order everywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/collectives/ring.h"
#include "device/collectives/tree.h"

namespace tutti::device::test {
namespace {

using Element = std::string;  // who contributed, in order
using Chunk = std::vector<Element>;

/// One direction between two ranks; holds as many chunks as a FIFO has slots.
class Pipe {
 public:
  void put(Chunk chunk) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return chunks_.size() < kSteps; });
    chunks_.push_back(std::move(chunk));
    changed_.notify_all();
  }
  Chunk take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !chunks_.empty(); });
    Chunk chunk = std::move(chunks_.front());
    chunks_.pop_front();
    changed_.notify_all();
    return chunk;
  }
  bool empty() const { return chunks_.empty(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Chunk> chunks_;
};

/// The verbs, on strings.
struct Recorder {
  std::vector<Pipe*> from, to;

  void deliver(const Chunk& chunk, Element* out) {
    if (out != nullptr) std::copy(chunk.begin(), chunk.end(), out);
    for (Pipe* pipe : to) pipe->put(chunk);
  }
  Chunk own(const Element* in, std::uint64_t n) { return Chunk(in, in + n); }
  Chunk reduced(const Element* in, std::uint64_t n) {
    Chunk chunk = own(in, n);
    for (Pipe* pipe : from) {
      const Chunk got = pipe->take();
      EXPECT_EQ(got.size(), n);
      for (std::uint64_t i = 0; i < n && i < got.size(); ++i) chunk[i] += got[i];
    }
    return chunk;
  }

  void send(const Element* in, std::uint64_t n) {
    if (n > 0) deliver(own(in, n), nullptr);
  }
  void copySend(const Element* in, Element* out, std::uint64_t n) {
    if (n > 0) deliver(own(in, n), out);
  }
  void recv(Element* out, std::uint64_t n) {
    if (n == 0) return;
    const Chunk chunk = from[0]->take();
    ASSERT_EQ(chunk.size(), n);
    std::copy(chunk.begin(), chunk.end(), out);
  }
  void recvCopySend(Element* out, std::uint64_t n) {
    if (n == 0) return;
    const Chunk chunk = from[0]->take();
    ASSERT_EQ(chunk.size(), n);
    deliver(chunk, out);
  }
  void recvReduceSend(const Element* in, std::uint64_t n) {
    if (n > 0) deliver(reduced(in, n), nullptr);
  }
  void recvReduceCopy(const Element* in, Element* out, std::uint64_t n) {
    if (n == 0) return;
    const Chunk chunk = reduced(in, n);
    std::copy(chunk.begin(), chunk.end(), out);
  }
  void recvReduceCopySend(const Element* in, Element* out, std::uint64_t n) {
    if (n > 0) deliver(reduced(in, n), out);
  }
  void copyLocal(const Element* in, Element* out, std::uint64_t n) { std::copy(in, in + n, out); }
};

std::string sorted(std::string text) {
  std::sort(text.begin(), text.end());
  return text;
}

struct Ranks {
  explicit Ranks(int ranks, std::uint64_t elements) : n(ranks), in(ranks), out(ranks) {
    for (int r = 0; r < n; ++r) {
      in[r].assign(elements, std::string(1, static_cast<char>('a' + r)));
      out[r].resize(elements);
    }
  }
  void expectSums() const {
    std::string all;
    for (int r = 0; r < n; ++r) all += static_cast<char>('a' + r);
    for (int r = 0; r < n; ++r) {
      for (std::size_t i = 0; i < out[r].size(); ++i) {
        ASSERT_EQ(sorted(out[r][i]), all) << "rank " << r << " element " << i;
        ASSERT_EQ(out[r][i], out[0][i]) << "in another order than on rank 0";
      }
    }
  }
  int n;
  std::vector<std::vector<Element>> in, out;
};

template <class F>
void onEveryRank(int n, F f) {
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) threads.emplace_back([&f, r] { f(r); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Schedule, ARingReducesEveryElementOncePerRank) {
  for (int n = 1; n <= 8; ++n) {
    for (const std::uint64_t count : {0, 1, 17, 200, 1000}) {
      Ranks ranks(n, count);
      std::vector<Pipe> pipes(n);
      onEveryRank(n, [&](int r) {
        std::vector<std::int32_t> order(n);
        for (int i = 0; i < n; ++i) order[i] = (r + i) % n;
        Recorder prims{{&pipes[r]}, {&pipes[(r + 1) % n]}};
        const RingWork work{{0, count}, count, 32, 0};
        ringAllReduce(prims, Ring{order.data(), n}, work, ranks.in[r].data(), ranks.out[r].data());
      });
      ranks.expectSums();
      for (const Pipe& pipe : pipes) EXPECT_TRUE(pipe.empty());
    }
  }
}

class TreeSchedule : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Arity, TreeSchedule, testing::Values(1, 2, 3));

TEST_P(TreeSchedule, ReducesEveryElementOncePerRankAndGivesAllTheRootsOrder) {
  const int arity = GetParam();
  for (int n = 2; n <= 8; ++n) {
    for (const std::uint64_t count : {0, 1, 17, 500}) {
      Ranks ranks(n, count);
      std::vector<Pipe> up(n), down(n);  // between a rank and its parent
      onEveryRank(n, [&](int r) {
        Recorder upwards{{}, {&up[r]}}, downwards{{&down[r]}, {}}, root;
        for (int child = r * arity + 1; child <= r * arity + arity && child < n; ++child) {
          upwards.from.push_back(&up[child]);
          downwards.to.push_back(&down[child]);
        }
        root = {upwards.from, downwards.to};
        const TreeWork work{{0, count}, 16};
        if (r == 0) return treeRoot(root, work, ranks.in[r].data(), ranks.out[r].data());
        std::thread other([&] { treeUp(upwards, work, ranks.in[r].data()); });
        treeDown(downwards, work, ranks.out[r].data());
        other.join();
      });
      ranks.expectSums();
    }
  }
}

}  // namespace
}  // namespace tutti::device::test
