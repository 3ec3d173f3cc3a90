// Real kernels whose ranks are joined by nothing but senders, receivers and a network.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "device/collective_run.h"
#include "device/world.h"
#include "transport/net/sim_kernels.h"

namespace tutti::test {
namespace {

using device::test::Case;
using device::test::World;
using device::test::WorldShape;

/// Tasks for all connections of a world whose ends are apart, and a thread that drives them.
class Engine {
 public:
  Engine(FakeNet& net, const device::test::World& world) {
    const device::SlotBytes slotBytes{world.slotBytesOf(device::Protocol::LL),
                                      world.slotBytesOf(device::Protocol::LL128),
                                      world.slotBytesOf(device::Protocol::Simple)};
    for (const device::test::World::Pair& pair : world.pairs()) {
      if (pair.from != pair.to) links_.push_back(std::make_unique<Link>(net, pair, slotBytes, world.shape().firstStep));
    }
    thread_ = std::thread([this] { run(); });
  }
  ~Engine() {
    over_.store(true);
    thread_.join();
    EXPECT_EQ(failures_, 0u);
  }

 private:
  struct Link {
    Link(FakeNet& net, const device::test::World::Pair& pair, const device::SlotBytes& slotBytes,
         std::uint64_t firstStep)
        : out(net::senderMessageBytes(slotBytes)), in(net::receiverMessageBytes(slotBytes)) {
      const std::size_t bytes = std::size_t{slotBytes[2]} * device::kSteps;
      simple = connectLanes(net, {{pair.sender.slots[2], bytes}}, {{pair.receiver.slots[2], bytes}});
      flagged = connectLanes(net, {{out.data(), out.size()}}, {{in.data(), in.size()}});
      sender = std::make_unique<net::NetSender>(net::SendSetup{{pathFor(device::Direction::Send, pair.from, pair.to),
                                                                &simple.sender, &flagged.sender, out.data(), firstStep},
                                                               pair.sender});
      receiver =
          std::make_unique<net::NetReceiver>(net::RecvSetup{{pathFor(device::Direction::Recv, pair.to, pair.from),
                                                             &simple.receiver, &flagged.receiver, in.data(), firstStep},
                                                            pair.receiver});
    }
    std::vector<std::byte> out, in;
    LanePair simple, flagged;
    std::unique_ptr<net::NetSender> sender;
    std::unique_ptr<net::NetReceiver> receiver;
  };

  void run() {
    while (!over_.load()) {
      bool any = false;
      for (const auto& link : links_) {
        for (proxy::ProgressTask* task : {static_cast<proxy::ProgressTask*>(link->sender.get()),
                                          static_cast<proxy::ProgressTask*>(link->receiver.get())}) {
          const auto moved = task->advance();
          if (!moved.ok()) ++failures_;
          any = any || (moved.ok() && moved.value());
        }
      }
      if (!any) std::this_thread::yield();
    }
  }

  std::vector<std::unique_ptr<Link>> links_;
  std::atomic<bool> over_{false};
  unsigned failures_ = 0;
  std::thread thread_;
};

void runCase(const device::test::Case& c, int nRanks, device::test::WorldShape shape = {}) {
  shape.nRanks = nRanks;
  shape.slotBytes = 1024;
  shape.apart = true;
  device::test::World world(shape);
  FakeNet net({.refuse = 3});
  Engine engine(net, world);
  for (int launch = 0; launch < 2; ++launch) device::test::check(world, c);
}

class KernelsOverANetwork : public testing::TestWithParam<device::Protocol> {};
INSTANTIATE_TEST_SUITE_P(Protocols, KernelsOverANetwork, testing::ValuesIn(kAllProtocols),
                         [](const auto& p) { return std::string(device::protocolName(p.param)); });

TEST_P(KernelsOverANetwork, ReduceOnARing) {
  for (const std::uint64_t count : {1, 700, 5000}) {
    for (const unsigned threads : {1u, 32u}) {
      runCase({.func = device::Func::AllReduce, .protocol = GetParam(), .count = count, .threads = threads}, 3);
    }
  }
}

TEST_P(KernelsOverANetwork, ReduceOnATree) {
  runCase(
      {.func = device::Func::AllReduce, .algorithm = device::Algorithm::Tree, .protocol = GetParam(), .count = 2000},
      4);
  runCase({.func = device::Func::AllReduce,
           .algorithm = device::Algorithm::Tree,
           .protocol = GetParam(),
           .count = 2000,
           .threads = 64},
          3);
}

TEST_P(KernelsOverANetwork, GoOnWhenStepsComeRound) {
  for (const std::uint64_t first : {(std::uint64_t{1} << 30) - 6, (std::uint64_t{1} << 32) - 6}) {
    runCase({.func = device::Func::AllReduce, .protocol = GetParam(), .count = 3000}, 2, {.firstStep = first});
  }
}

TEST_P(KernelsOverANetwork, SendWhatLiesInTheirInput) {
  if (GetParam() != device::Protocol::Simple) return;
  runCase({.func = device::Func::AllReduce, .count = 5000}, 2, {.pulls = true});
}

TEST(KernelsOverANetworkByPat, GatherAndReduce) {
  for (const device::Func func : {device::Func::AllGather, device::Func::ReduceScatter}) {
    runCase({.func = func, .algorithm = device::Algorithm::Pat, .count = 500, .threads = 32}, 5);
  }
}

}  // namespace
}  // namespace tutti::test
