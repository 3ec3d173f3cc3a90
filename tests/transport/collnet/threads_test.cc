// Kernels on threads, an engine for each node, and a network in bad weather.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "proxy/engine.h"
#include "proxy/group.h"
#include "support/log_capture.h"
#include "transport/collnet/collnet_world.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kSlotBytes = 2048;

/// Which operations there are, in order: of which set, and its steps.
struct Work {
  std::size_t set = 0;
  std::vector<collnet::CallWords> steps;
};

std::vector<Work> someWorks(unsigned seed, std::uint64_t nodes, std::size_t count) {
  std::minstd_rand dice(seed);
  std::vector<Work> works(count);
  for (Work& work : works) {
    work.set = dice() % 2;
    const std::uint64_t areaBytes = (work.set == 0 ? 3 : 1) * kSlotBytes;
    work.steps.resize(1 + dice() % 12);
    const auto func = static_cast<CollNetFunc>(dice() % 3);
    const std::uint64_t perNode = 4 * (1 + dice() % 1500);
    for (auto& step : work.steps) {
      std::uint64_t bytes = dice() % 4 == 0 ? 0 : 4 * (1 + dice() % (areaBytes / 4));
      bytes = func == CollNetFunc::AllReduce ? bytes : std::min(bytes, nodes * perNode);
      const std::uint64_t begin = func == CollNetFunc::AllReduce ? 0 : dice() % ((nodes * perNode - bytes) / 4 + 1) * 4;
      step = wordsFor(func, bytes, begin, perNode);
    }
  }
  return works;
}

/// A kernel's part on a channel: its lane in each set, if it has one there.
class ChannelKernel {
 public:
  ChannelKernel(const CollNetWorld& world, std::size_t node, std::vector<LaneKernel*> lanes)
      : world_(world), node_(node), lanes_(std::move(lanes)) {}

  void run(const std::vector<Work>& works, const std::atomic<bool>& stop) {
    for (const Work& work : works) {
      if (lanes_[work.set] != nullptr) runWork(*lanes_[work.set], work, stop);
    }
  }
  std::size_t wrong() const { return wrong_; }

 private:
  /// As far ahead as the slots allow, and all back before the next work.
  void runWork(LaneKernel& lane, const Work& work, const std::atomic<bool>& stop) {
    const std::uint64_t sent = lane.filled(), received = lane.read();
    std::vector<std::byte> content(lane.conn().areaBytes);
    while (lane.read() - received < work.steps.size() && !stop.load(std::memory_order_relaxed)) {
      const std::uint64_t next = lane.filled() - sent;
      if (next < work.steps.size() && lane.mayFill()) {
        fill(lane, work.steps[next], content);
      } else if (lane.mayRead()) {
        read(lane, work.steps[lane.read() - received], content);
      } else {
        std::this_thread::yield();
      }
    }
  }
  static std::uint64_t shareEnd(const device::CollNetConn& conn, const collnet::CallWords& words, unsigned lane) {
    const std::uint64_t chunk = (words.bytes / 4 + conn.lanes - 1u) / conn.lanes * 4;
    return std::min(words.bytes, chunk * lane);
  }
  void fill(LaneKernel& lane, const collnet::CallWords& words, std::vector<std::byte>& content) const {
    const device::CollNetConn& conn = lane.conn();
    CollNetWorld::writeContent(content.data(), node_, words);
    const std::uint64_t from = shareEnd(conn, words, conn.lane), to = shareEnd(conn, words, conn.lane + 1u);
    std::memcpy(lane.sendSlot() + from, content.data() + from, to - from);
    if (conn.lane == 0) lane.say(words);
    lane.fill();
  }
  void read(LaneKernel& lane, const collnet::CallWords& words, std::vector<std::byte>& content) {
    const device::CollNetConn& conn = lane.conn();
    const std::uint64_t from = shareEnd(conn, words, conn.lane), to = shareEnd(conn, words, conn.lane + 1u);
    std::memcpy(content.data(), lane.recvSlot() + from, to - from);
    wrong_ += world_.wrongIn(content.data(), node_, words, {from, to - from});
    lane.free();
  }

  const CollNetWorld& world_;
  const std::size_t node_;
  const std::vector<LaneKernel*> lanes_;
  std::size_t wrong_ = 0;
};

/// The engines of all nodes.
class Engines {
 public:
  explicit Engines(CollNetWorld& world) {
    for (auto& node : world.nodes) {
      auto engine = proxy::ProgressEngine::create("NCCL Progress").value();
      auto group = engine->group({.busy = [] { return true; }, .aborted = {}, .failed = [this](Status) { ++failed; }});
      EXPECT_TRUE(group.ok());
      groups_.push_back(std::move(group).value());
      EXPECT_TRUE(groups_.back()->add(node.link->task()).ok());
      groups_.back()->hold();
      tasks_.push_back(node.link->task());
    }
  }
  ~Engines() {
    for (std::size_t n = 0; n < groups_.size(); ++n) {
      groups_[n]->release();
      groups_[n]->remove(tasks_[n]);
    }
  }
  std::atomic<int> failed{0};

 private:
  std::vector<std::unique_ptr<proxy::ProgressGroup>> groups_;
  std::vector<proxy::ProgressTask*> tasks_;
};

/// Runs the works on all nodes; which of them were stopped at the deadline is for the caller to see.
std::size_t runAll(CollNetWorld& world, const std::vector<Work>& works, const std::atomic<bool>& stop) {
  std::vector<std::unique_ptr<ChannelKernel>> kernels;
  for (std::size_t n = 0; n < world.nodes.size(); ++n) {
    auto& sets = world.nodes[n].sets;
    for (std::size_t channel = 0; channel < 3; ++channel) {
      std::vector<LaneKernel*> lanes{&sets[0][channel], channel == 1 ? &sets[1][0] : nullptr};
      kernels.push_back(std::make_unique<ChannelKernel>(world, n, std::move(lanes)));
    }
  }
  std::vector<std::thread> threads;
  for (auto& kernel : kernels) threads.emplace_back([&] { kernel->run(works, stop); });
  for (auto& thread : threads) thread.join();
  std::size_t wrong = 0;
  for (const auto& kernel : kernels) wrong += kernel->wrong();
  return wrong;
}

const std::vector<collnet::LaneSetShape> kShapes{{"CollNetDirect", {0, 1, 2}, kSlotBytes},
                                                 {"CollNetChain", {1}, kSlotBytes}};

TEST(CollNetThreads, GetEverythingRightInBadWeather) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    const int nodes = 1 + static_cast<int>(seed % 3);
    std::vector<FakeCollNetKnobs> knobs;
    for (unsigned n = 0; n < 3; ++n)
      knobs.push_back({.seed = seed * 10 + n, .refuse = 20, .delay = 3, .mostBytes = 1500});
    CollNetWorld world({.nodes = nodes,
                        .place = {.onDevice = seed % 2 == 0, .dmaBuf = false, .flushes = seed % 2 == 0},
                        .knobs = knobs});
    world.begin(kShapes);
    const std::atomic<bool> stop{false};
    const Engines engines(world);
    EXPECT_EQ(runAll(world, someWorks(seed, static_cast<std::uint64_t>(nodes), 30), stop), 0u);
    EXPECT_EQ(engines.failed, 0);
    world.expectSameCalls();
    for (auto& node : world.nodes) EXPECT_LE(node.network->mostOpen, 9u) << "eight calls and a flush";
  }
}

TEST(CollNetThreads, AreDescribedMeanwhile) {
  CollNetWorld world({.nodes = 2, .knobs = {{.refuse = 20, .delay = 3}}});
  world.begin(kShapes);
  std::atomic<bool> stop{false}, over{false};
  const Engines engines(world);
  std::thread reader([&] {
    while (!over) {
      for (auto& node : world.nodes) {
        EXPECT_NE(node.link->task()->describe().find("rail 1 by COLLNET/Fake/0"), std::string::npos);
        EXPECT_LE(node.link->task()->counters().done, node.link->task()->counters().posted);
      }
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(runAll(world, someWorks(7, 2, 20), stop), 0u);
  over = true;
  reader.join();
}

TEST(CollNetThreads, HearOfAFailureThroughTheEngine) {
  CollNetWorld world({.nodes = 2, .knobs = {{}, {.failing = "iallreduce", .failAfter = 5}}});
  world.begin(kShapes);
  expectLog("Fake: the switch is on fire");
  expectLog("CollNet of rank 2 (host hostb, device 0), rail 1 by COLLNET/Fake/0 failed in call 5 (AllReduce");
  std::atomic<bool> stop{false};
  const Engines engines(world);
  std::thread watch([&] {
    EXPECT_TRUE(until([&] { return engines.failed > 0; }));
    stop = true;  // as a communicator's abort would
  });
  std::vector<Work> works(1);
  works[0].steps.assign(20, wordsFor(CollNetFunc::AllReduce, 64));
  EXPECT_EQ(runAll(world, works, stop), 0u);
  watch.join();
  EXPECT_EQ(engines.failed, 1);
}

}  // namespace
}  // namespace tutti::test
