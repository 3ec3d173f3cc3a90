// Heads of several nodes in one process, with lanes and kernels that are told what to do step by step.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proxy/task.h"
#include "support/until.h"
#include "transport/collnet/collnet_words.h"
#include "transport/collnet/fake_collnet.h"
#include "transport/collnet/link.h"
#include "transport/common/registered_memory.h"
#include "transport/net/lane/counters.h"
#include "transport/net/test_device.h"

namespace tutti::test {

/// Sets of two lanes, on channels that begin at 0 and on others.
inline const collnet::LaneSetShape kDirect{"CollNetDirect", {0, 1}, 4096};
inline const collnet::LaneSetShape kTwoLanes{"CollNetDirect", {3, 5}, 4096};

/// One kernel's view of a lane.
class LaneKernel {
 public:
  explicit LaneKernel(const device::CollNetConn& conn) : conn_(conn) {}
  const device::CollNetConn& conn() const { return conn_; }
  std::uint64_t filled() const { return filled_; }
  std::uint64_t read() const { return read_; }

  bool mayFill() const { return filled_ - net::loadCounter(&conn_.sendHead->value) < device::kSteps; }
  std::byte* sendSlot() const { return conn_.sendSlots + filled_ % device::kSteps * conn_.areaBytes; }
  /// Of lane 0, before fill().
  void say(const collnet::CallWords& words) {
    const auto write = [this](device::AskWords& of, std::uint64_t value) {
      std::atomic_ref(*of.of(filled_)).store(value, std::memory_order_relaxed);
    };
    write(conn_.words->call, words.call);
    write(conn_.words->begin, words.begin);
    write(conn_.words->bytes, words.bytes);
    write(conn_.words->perNode, words.perNode);
    write(conn_.words->sendFrom, words.sendFrom);
    write(conn_.words->recvTo, words.recvTo);
  }
  void fill() { net::storeCounter(&conn_.sendTail->value, ++filled_); }

  bool mayRead() const { return net::loadCounter(&conn_.recvTail->value) != read_; }
  const std::byte* recvSlot() const { return conn_.recvSlots + read_ % device::kSteps * conn_.areaBytes; }
  void free() { net::storeCounter(&conn_.recvHead->value, ++read_); }

 private:
  device::CollNetConn conn_;
  std::uint64_t filled_ = 0;
  std::uint64_t read_ = 0;
};

/// Element `i` of what a node has at a place of the vector or the concatenation.
inline std::int32_t valueAt(std::uint64_t node, std::uint64_t i) {
  return static_cast<std::int32_t>(node * 1'000'000 + i);
}

/// Heads of one rail.
class CollNetWorld {
 public:
  struct Options {
    int nodes = 2;
    net::SlotPlace place = {};
    std::vector<FakeCollNetKnobs> knobs = {};  ///< by node; fewer: the last one's
    std::shared_ptr<gpu::MemoryLedger> ledger = {};
    const gpu::Device* gpu = testDevice();  ///< outlives the world
    std::shared_ptr<transport::RegisteredMemory> registered = {};
  };
  struct Node {
    std::shared_ptr<FakeCollNet> network;
    std::unique_ptr<collnet::CollNetLink> link;
    std::vector<std::vector<LaneKernel>> sets;  ///< lanes
  };

  CollNetWorld() : CollNetWorld(Options{}) {}
  explicit CollNetWorld(const Options& options) {
    for (int n = 0; n < options.nodes; ++n) {
      const auto& knobs = options.knobs;
      const auto index = static_cast<std::size_t>(n);
      auto network = std::make_shared<FakeCollNet>(
          fabric, knobs.empty() ? FakeCollNetKnobs{} : knobs[std::min(index, knobs.size() - 1)]);
      collnet::LinkSetup setup{.network = network,
                               .send = options.place,
                               .recv = options.place,
                               .rail = 1,
                               .gpu = options.gpu,
                               .ledger = options.ledger,
                               .registered = options.registered};
      setup.self.rank = 2 * n;
      setup.self.cudaDevice = 0;
      std::snprintf(setup.self.hostName.data(), setup.self.hostName.size(), "host%c", 'a' + n);
      nodes.push_back({network, std::make_unique<collnet::CollNetLink>(std::move(setup)), {}});
    }
  }
  ~CollNetWorld() {
    nodes.clear();
    EXPECT_EQ(fabric->faults(), 0u) << fabric->firstFault();
    fabric->release();
    EXPECT_TRUE(until([&] { return fabric->leftOpen() == 0; })) << "something was not given back";
  }

  /// The outcome of each node's connect, all at once.
  std::vector<Status> connect(Deadline deadline = Deadline::in(kGenerous), const Abort* abort = nullptr) {
    std::vector<collnet::CollNetAddress> addresses;
    for (Node& node : nodes) {
      auto address = node.link->listen();
      EXPECT_TRUE(address.ok());
      addresses.push_back(address.ok() ? address.value() : collnet::CollNetAddress{});
    }
    std::vector<Status> outcomes(nodes.size());
    std::vector<std::thread> threads;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      threads.emplace_back(
          [&, n] { outcomes[n] = nodes[n].link->connect(addresses, static_cast<int>(n), deadline, abort); });
    }
    for (auto& thread : threads) thread.join();
    return outcomes;
  }
  /// The same, where all is to go well; adds the sets.
  void begin(const std::vector<collnet::LaneSetShape>& shapes) {
    for (const Status status : connect()) ASSERT_TRUE(status.ok());
    for (const auto& shape : shapes) addLanes(shape);
  }
  void addLanes(const collnet::LaneSetShape& shape) {
    for (Node& node : nodes) {
      const auto set = node.link->addLanes(shape);
      ASSERT_TRUE(set.ok());
      ASSERT_EQ(set.value(), node.sets.size());
      auto& lanes = node.sets.emplace_back();
      for (std::size_t lane = 0; lane < shape.channels.size(); ++lane) {
        lanes.emplace_back(node.link->conn(set.value(), static_cast<int>(lane)));
      }
    }
  }

  /// Fills the next step of all lanes of a node. Content as valueAt() says, at the words' place.
  static void fill(Node& node, std::uint64_t number, std::size_t set, const collnet::CallWords& words) {
    auto& lanes = node.sets[set];
    ASSERT_TRUE(lanes[0].mayFill());
    writeContent(lanes[0].sendSlot(), number, words);
    lanes[0].say(words);
    for (LaneKernel& lane : lanes) lane.fill();
  }
  static void writeContent(std::byte* slot, std::uint64_t number, const collnet::CallWords& words) {
    const bool gathers = device::CollNetCall::of(words.call).func == CollNetFunc::AllGather;
    for (std::uint64_t at = 0; at < words.bytes; at += 4) {
      const std::uint64_t place = words.begin + at;
      const bool own = !gathers || place / words.perNode == number;
      const std::int32_t value = own ? valueAt(number, place / 4) : -1;
      std::memcpy(slot + at, &value, 4);
    }
  }
  /// Reads the next step of a node and compares it.
  void read(std::size_t number, std::size_t set, const collnet::CallWords& words) {
    auto& lanes = nodes[number].sets[set];
    ASSERT_TRUE(lanes[0].mayRead());
    EXPECT_EQ(wrongIn(lanes[0].recvSlot(), number, words, {0, words.bytes}), 0u);
    for (LaneKernel& lane : lanes) lane.free();
  }
  /// How many elements of a part of what came, which lies at `content`, are not what they should be.
  std::size_t wrongIn(const std::byte* content, std::uint64_t number, const collnet::CallWords& words,
                      collnet::StepRange part) const {
    const CollNetFunc func = device::CollNetCall::of(words.call).func;
    std::size_t wrong = 0;
    for (std::uint64_t at = 0; at < part.bytes; at += 4) {
      const std::uint64_t place = words.begin + part.offset + at;
      if (func == CollNetFunc::ReduceScatter && place / words.perNode != number) continue;
      std::int32_t expected = 0, found = 0;
      for (std::uint64_t n = 0; n < nodes.size() && func != CollNetFunc::AllGather; ++n)
        expected += valueAt(n, place / 4);
      if (func == CollNetFunc::AllGather) expected = valueAt(place / words.perNode, place / 4);
      std::memcpy(&found, content + at, 4);
      wrong += found != expected ? 1 : 0;
    }
    return wrong;
  }
  /// One turn of every node's task; whether anything was done.
  bool advance() {
    bool any = false;
    for (Node& node : nodes) {
      const auto advanced = node.link->task()->advance();
      EXPECT_TRUE(advanced.ok());
      any = any || (advanced.ok() && advanced.value());
    }
    return any;
  }
  /// A whole step of all nodes.
  void step(std::size_t set, const collnet::CallWords& words) {
    for (std::size_t n = 0; n < nodes.size(); ++n) fill(nodes[n], n, set, words);
    ASSERT_TRUE(until([&] {
      advance();
      for (Node& node : nodes) {
        if (!node.sets[set].back().mayRead()) return false;
      }
      return true;
    }));
    for (std::size_t n = 0; n < nodes.size(); ++n) read(n, set, words);
  }
  void expectSameCalls() {
    for (const Node& node : nodes) EXPECT_EQ(node.network->taken(), nodes[0].network->taken());
  }

  std::shared_ptr<FakeSwitch> fabric = std::make_shared<FakeSwitch>();
  std::vector<Node> nodes;
};

}  // namespace tutti::test
