// A world of simulated ranks whose connections for messages share slots over a network.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "device/world.h"
#include "gpu/context.h"
#include "gpu/driver_calls.h"
#include "gpu/memory_ledger.h"
#include "transport/net/lane/shared_slots.h"
#include "transport/net/recv/multi_recv.h"
#include "transport/net/sim_kernels.h"
#include "transport/net/test_device.h"

namespace tutti::test {

/// A world whose ranks share slots for all their messages, tasks for its connections, and a thread that drives them.
/// Where the network receives several messages at once, the channels of a pair of ranks share a network connection.
class SharingWorld {
 public:
  SharingWorld(device::test::WorldShape shape, std::uint32_t slots, FakeKnobs knobs)
      : net_(std::move(knobs)), world_(adapted(shape)) {
    const int mesh = static_cast<int>(device::ConnKind::Mesh);
    for (unsigned c = 0; c < shape.nChannels; ++c) {
      for (int from = 0; from < shape.nRanks; ++from) {
        for (int to = 0; to < shape.nRanks; ++to) {
          if (from == to) continue;
          auto& sender = world_.comm(from)->channels[c].send[mesh][to];
          auto& receiver = world_.comm(to)->channels[c].recv[mesh][from];
          const net::SharedSlots& out = poolOf(from, c, device::Direction::Send, slots);
          const net::SharedSlots& in = poolOf(to, c, device::Direction::Recv, slots);
          sender.slots[kSimple] = out.slots(net::Viewer::Kernels);
          sender.shared = out.ofSender(net::Viewer::Kernels);
          receiver.slots[kSimple] = in.slots(net::Viewer::Kernels);
          receiver.shared.taken = in.taken();
          receiver.shared.count = slots;
          links_.push_back(std::make_unique<Link>(joinOf(from, to), static_cast<int>(c), sender, receiver,
                                                  poolOf(from, c, device::Direction::Send, slots),
                                                  poolOf(to, c, device::Direction::Recv, slots)));
        }
      }
    }
    thread_ = std::thread([this] { run(); });
  }
  ~SharingWorld() { stop(); }

  device::test::World& world() { return world_; }
  FakeNet& net() { return net_; }
  void stop() {
    over_.store(true);
    if (thread_.joinable()) thread_.join();
    EXPECT_EQ(failures_, 0u);
    EXPECT_EQ(net_.faults, 0u);
    EXPECT_LE(net_.mostOpen, net_.knobs().maxRecvs > 1 ? 8u * world_.shape().nChannels : 8u);
  }
  /// Every slot that was taken has come back; how many have been taken in all.
  std::uint64_t settle() {
    stop();
    std::uint64_t all = 0;
    for (auto& [key, pool] : pools_) {
      const device::SendShared slots = pool->ofSender(net::Viewer::Host);
      all += *slots.taken;
      if (std::get<2>(key) == device::Direction::Send) {
        EXPECT_EQ(*slots.taken, *slots.givenBack);
      }
    }
    return all;
  }

 private:
  static constexpr auto kSimple = static_cast<std::size_t>(device::Protocol::Simple);
  /// A network connection, and who posts its receives; null: each connection for itself.
  struct Join {
    LanePair lanes;
    std::shared_ptr<net::MultiRecv> groups;
  };
  struct Link {
    Link(const Join& join, int channel, const device::SendConn& sender, const device::RecvConn& receiver,
         net::SharedSlots& out, net::SharedSlots& in)
        : lanes(join.lanes), groups(join.groups) {
      const auto reg = [&](net::NetLane& lane, net::SharedSlots& slots) {
        lane.slotRegistration =
            lane.net->registerMemory(lane.connection, slots.memory(), slots.bytes(), plugin::PtrKind::Host).value();
        lane.tag = channel;
      };
      reg(lanes.sender, out);
      reg(lanes.receiver, in);
      net::SendSetup sending{{pathFor(device::Direction::Send), &lanes.sender}, sender};
      sending.shared = &out;
      send = std::make_unique<net::NetSender>(sending);
      net::RecvSetup receiving{{pathFor(device::Direction::Recv), &lanes.receiver}, receiver};
      receiving.shared = &in;
      receiving.groups = groups.get();
      recv = std::make_unique<net::NetReceiver>(receiving);
    }
    LanePair lanes;
    std::shared_ptr<net::MultiRecv> groups;
    std::unique_ptr<net::NetSender> send;
    std::unique_ptr<net::NetReceiver> recv;
  };

  static device::test::WorldShape adapted(device::test::WorldShape shape) {
    shape.apart = true;
    return shape;
  }
  Join joinOf(int from, int to) {
    const int most = net_.knobs().maxRecvs;
    if (most == 1) return {connectLanes(net_, {}, {}), nullptr};
    Join& join = joins_[{from, to}];
    if (join.groups == nullptr) {
      join.lanes = connectLanes(net_, {}, {});
      join.groups = std::make_shared<net::MultiRecv>(std::make_shared<net::RecvSequence>(), most);
      join.groups->use(net_, join.lanes.receiver.connection);
    }
    return join;
  }
  net::SharedSlots& poolOf(int rank, unsigned channel, device::Direction direction, std::uint32_t slots) {
    auto& pool = pools_[{rank, channel, direction}];
    if (pool == nullptr) {
      const net::SharedShape shape{slots, world_.slotBytesOf(device::Protocol::Simple), false};
      pool = net::SharedSlots::create(*testDevice(), shape, "slots of a test").value();
    }
    return *pool;
  }
  void run() {
    for (bool idle = false; !(over_.load() && idle);) {
      idle = true;
      for (const auto& link : links_) {
        for (proxy::ProgressTask* task : {static_cast<proxy::ProgressTask*>(link->send.get()),
                                          static_cast<proxy::ProgressTask*>(link->recv.get())}) {
          const auto moved = task->advance();
          if (!moved.ok()) ++failures_;
          idle = idle && !(moved.ok() && moved.value());
        }
        idle = idle && (link->send->quiet() || aborted());
      }
      if (idle) std::this_thread::yield();
    }
  }
  bool aborted() { return std::atomic_ref(*world_.abortWord()).load() != 0; }

  FakeNet net_;
  device::test::World world_;
  std::map<std::tuple<int, unsigned, device::Direction>, std::shared_ptr<net::SharedSlots>> pools_;
  std::map<std::pair<int, int>, Join> joins_;
  std::vector<std::unique_ptr<Link>> links_;
  std::atomic<bool> over_{false};
  unsigned failures_ = 0;
  std::thread thread_;
};

}  // namespace tutti::test
